/** Memory that is kept for the machine, by node, as a KubeletConfiguration says it. Pure. */
import { goQuote } from '#lib/go-text.ts'
import {
  addQuantities,
  compareQuantities,
  parseQuantity,
  type Quantity,
  quantityOf,
  quantityText,
  quantityValue,
} from '#meta/quantity.ts'

import { type Reserved, reservationOf } from '../allocatable.ts'
import type { KubeletConfiguration } from '../configuration/configuration.ts'
import type { MemoryNode } from './memory-nodes.ts'
import { MEMORY, type SystemReserved } from './memory-table.ts'

export type MemoryReservations = NonNullable<KubeletConfiguration['reservedMemory']>

export interface ReservationQuestion {
  readonly policy: string
  readonly nodes: readonly MemoryNode[]
  readonly reservations: MemoryReservations
  /** What the node keeps from pods in all: by nodes it must be the same. */
  readonly reserved: Reserved
  readonly capacity: Readonly<Record<string, string>>
}

/** Throws, in upstream's words, when that cannot be; also when there is no such policy. */
export function reservedByNode(question: ReservationQuestion): SystemReserved {
  const { policy, nodes, reservations } = question
  if (policy === 'None') return new Map()
  if (policy === 'BestEffort') throw new Error(`policy ${goQuote(policy)} is not available for platform "linux"`)
  if (policy !== 'Static') throw new Error(`unknown policy: ${goQuote(policy)}`)
  const known = new Set(nodes.map(({ id }) => id))
  const stranger = reservations.find(({ numaNode = 0 }) => !known.has(numaNode))
  if (stranger !== undefined) {
    const which = `a NUMA node ${stranger.numaNode} that does not exist on this machine`
    throw new Error(`the reserved memory configuration references ${which}`)
  }
  checkTotals(question)
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

/** Of each kind of memory, nodes keep together what the node keeps. */
function checkTotals({ nodes, reservations, reserved, capacity }: ReservationQuestion): void {
  const limits = reservations.flatMap((reservation) => Object.entries(reservation.limits))
  const ofMachine = nodes.flatMap(({ hugePages }) => [...hugePages.keys()])
  for (const type of new Set([...limits.map(([name]) => name), MEMORY, ...ofMachine])) {
    const said = limits.filter(([name]) => name === type).map(([, text]) => parseQuantity(text))
    const total = said.reduce<Quantity>((sum, one) => addQuantities(sum, one), quantityOf(0))
    const kept = reservationOf(type, parseQuantity(capacity[type] ?? '0'), reserved)
    if (compareQuantities(total, kept) === 0) continue
    const texts = [quantityText(total), type, quantityText(kept)].map(goQuote)
    throw new Error(
      `the total amount ${texts[0]} of type ${texts[1]} is not equal to the value ${texts[2]} determined by Node Allocatable feature`,
    )
  }
}
