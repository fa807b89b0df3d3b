/** Reads the system's reserved memory per NUMA node from KubeletConfiguration. Pure. */
import { goQuote } from '#lib/go/text.ts'
import {
  addQuantities,
  compareQuantities,
  parseQuantity,
  type Quantity,
  quantityOf,
  quantityText,
  quantityValue,
} from '#meta/quantity.ts'

import type { KubeletConfiguration } from '../configuration/configuration.ts'
import { reservationOf, type Reserved } from '../node/allocatable.ts'
import type { MemoryNode } from './memory-nodes.ts'
import { MEMORY, type SystemReserved } from './memory-table.ts'

export type MemoryReservations = NonNullable<KubeletConfiguration['reservedMemory']>

export interface ReservationInput {
  readonly policy: string
  readonly nodes: readonly MemoryNode[]
  readonly reservations: MemoryReservations
  /** The reservations of the whole node; the sums per type must be equal. */
  readonly reserved: Reserved
  readonly capacity: Readonly<Record<string, string>>
}

/** Throws upstream's text for invalid reservations or an unknown policy. */
export function reservedByNode(input: ReservationInput): SystemReserved {
  const { policy, nodes, reservations } = input
  if (policy === 'None') return new Map()
  if (policy === 'BestEffort') throw new Error(`policy ${goQuote(policy)} is not available for platform "linux"`)
  if (policy !== 'Static') throw new Error(`unknown policy: ${goQuote(policy)}`)
  const known = new Set(nodes.map(({ id }) => id))
  const stranger = reservations.find(({ numaNode = 0 }) => !known.has(numaNode))
  if (stranger !== undefined) {
    const which = `a NUMA node ${stranger.numaNode} that does not exist on this machine`
    throw new Error(`the reserved memory configuration references ${which}`)
  }
  checkTotals(input)
  const byNode = Map.groupBy(reservations, ({ numaNode = 0 }) => numaNode)
  const result = new Map(
    Array.from(byNode, ([node, own]) => {
      const limits = own.flatMap((reservation) => Object.entries(reservation.limits))
      return [node, new Map(limits.map(([type, text]) => [type, quantityValue(parseQuantity(text))]))] as const
    }),
  )
  if ([...result.values()].some((types) => (types.get(MEMORY) ?? 0) > 0)) return result
  throw new Error('[memorymanager] you should specify the system reserved memory')
}

/** Checks that reservations per NUMA node add up to the node's reservations, for each memory type. */
function checkTotals({ nodes, reservations, reserved, capacity }: ReservationInput): void {
  const limits = reservations.flatMap((reservation) => Object.entries(reservation.limits))
  const ofMachine = nodes.flatMap(({ hugePages }) => [...hugePages.keys()])
  for (const type of new Set([...limits.map(([name]) => name), MEMORY, ...ofMachine])) {
    const limitsOfType = limits.filter(([name]) => name === type).map(([, text]) => parseQuantity(text))
    const total = limitsOfType.reduce<Quantity>((sum, one) => addQuantities(sum, one), quantityOf(0))
    const kept = reservationOf(type, parseQuantity(capacity[type] ?? '0'), reserved)
    if (compareQuantities(total, kept) === 0) continue
    const texts = [quantityText(total), type, quantityText(kept)].map(goQuote)
    throw new Error(
      `the total amount ${texts[0]} of type ${texts[1]} is not equal to the value ${texts[2]} determined by Node Allocatable feature`,
    )
  }
}
