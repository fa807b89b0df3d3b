/** Parses eviction thresholds and compares them with the observed signals. Pure. */
import { durationMs } from '#lib/go/duration.ts'
import {
  isZeroQuantity,
  parseQuantity,
  type Quantity,
  quantityOf,
  quantitySign,
  quantityText,
  quantityValue,
} from '#meta/quantity.ts'

import type { NodeUse } from '../machine/node-use.ts'

export const SIGNALS = {
  'memory.available': { condition: 'MemoryPressure', resource: 'memory' },
  'nodefs.available': { condition: 'DiskPressure', resource: 'ephemeral-storage' },
  'nodefs.inodesFree': { condition: 'DiskPressure', resource: 'inodes' },
  'imagefs.available': { condition: 'DiskPressure', resource: 'ephemeral-storage' },
  'imagefs.inodesFree': { condition: 'DiskPressure', resource: 'inodes' },
  'pid.available': { condition: 'PIDPressure', resource: 'pids' },
} as const

export type Signal = keyof typeof SIGNALS

/** A fraction of the capacity such as `10%`, or an amount. */
type Amount = { readonly share: number } | { readonly quantity: Quantity }

export interface Threshold {
  readonly signal: Signal
  readonly amount: Amount
  /** Time that a soft threshold must be met; 0 for hard ones. */
  readonly graceMs: number
  readonly isHard: boolean
  /** Additional amount that must be free before the pressure ends. */
  readonly reclaim?: Amount | undefined
}

type ThresholdTexts = Readonly<Record<string, string>>

export interface EvictionConfiguration {
  readonly evictionHard?: ThresholdTexts
  readonly evictionSoft?: ThresholdTexts
  readonly evictionSoftGracePeriod?: ThresholdTexts
  readonly evictionMinimumReclaim?: ThresholdTexts
}

/** Upstream's defaults on Linux. */
export const DEFAULT_HARD: ThresholdTexts = {
  'memory.available': '100Mi',
  'nodefs.available': '10%',
  'nodefs.inodesFree': '5%',
  'imagefs.available': '15%',
  'imagefs.inodesFree': '5%',
}

/** Throws upstream's errors. */
export function parseThresholds(configuration: EvictionConfiguration): Threshold[] {
  const { evictionHard = DEFAULT_HARD, evictionSoft = {} } = configuration
  const { evictionSoftGracePeriod = {}, evictionMinimumReclaim = {} } = configuration
  const reclaims = new Map(Object.entries(evictionMinimumReclaim).map(([name, text]) => [name, amountOf(name, text)]))
  const of = ([name, text]: [string, string], isHard: boolean): Threshold[] => {
    const signal = signalOf(name)
    const amount = amountOf(name, text)
    if (amount === undefined) return []
    const grace = evictionSoftGracePeriod[name]
    if (!isHard && grace === undefined)
      throw new Error(`grace period must be specified for the soft eviction threshold ${name}`)
    const graceMs = isHard ? 0 : durationMs(grace ?? '')
    return [{ signal, amount, isHard, graceMs, reclaim: reclaims.get(name) }]
  }
  return [
    ...Object.entries(evictionHard).flatMap((entry) => of(entry, true)),
    ...Object.entries(evictionSoft).flatMap((entry) => of(entry, false)),
  ]
}

function signalOf(name: string): Signal {
  if (!Object.hasOwn(SIGNALS, name)) throw new Error(`unsupported eviction signal ${name}`)
  return name as Signal
}

/** Undefined: the threshold is disabled. */
function amountOf(name: string, text: string): Amount | undefined {
  if (text.endsWith('%')) {
    if (text === '0%' || text === '100%') return undefined
    const share = Number(text.slice(0, -1)) / 100
    if (!(share >= 0)) throw new Error(`eviction percentage threshold ${name} must be >= 0%: ${text}`)
    if (share > 1) throw new Error(`eviction percentage threshold ${name} must be <= 100%: ${text}`)
    return { share }
  }
  const quantity = parseQuantity(text)
  if (quantitySign(quantity) < 0 || isZeroQuantity(quantity)) {
    throw new Error(`eviction threshold ${name} must be positive: ${text}`)
  }
  return { quantity }
}

export interface Observation {
  readonly available: number
  readonly capacity: number
}

export type Observations = ReadonlyMap<Signal, Observation>

export function observationsOf({ memory, nodeDisk, imageDisk, processes }: NodeUse): Observations {
  const seen = new Map<Signal, Observation>()
  if (memory !== undefined) {
    seen.set('memory.available', { available: memory.availableBytes, capacity: memory.capacityBytes })
  }
  for (const [name, disk] of [
    ['nodefs', nodeDisk],
    ['imagefs', imageDisk],
  ] as const) {
    if (disk === undefined) continue
    seen.set(`${name}.available`, { available: disk.availableBytes, capacity: disk.capacityBytes })
    // File systems with dynamic inodes report none.
    if (disk.inodes > 0) seen.set(`${name}.inodesFree`, { available: disk.inodesFree, capacity: disk.inodes })
  }
  if (processes !== undefined) seen.set('pid.available', processes)
  return seen
}

const valueOf = (amount: Amount, capacity: number): number =>
  'share' in amount ? Math.trunc(capacity * amount.share) : quantityValue(amount.quantity)

/** True if the available amount is below the threshold; `isReclaiming`: plus the minimum reclaim. */
export function isMet({ signal, amount, reclaim }: Threshold, seen: Observations, isReclaiming: boolean): boolean {
  const observed = seen.get(signal)
  if (observed === undefined) return false
  const more = isReclaiming && reclaim !== undefined ? valueOf(reclaim, observed.capacity) : 0
  return valueOf(amount, observed.capacity) + more > observed.available
}

/** `Threshold quantity: 22Gi, available: 15749032Ki. `. */
export function thresholdText({ signal, amount }: Threshold, seen: Observations): string {
  const observed = seen.get(signal)
  if (observed === undefined) return ''
  const format = signal.endsWith('.inodesFree') || signal === 'pid.available' ? 'DecimalSI' : 'BinarySI'
  const quantity =
    'share' in amount ? quantityOf(Math.trunc(observed.capacity * amount.share), format) : amount.quantity
  const available = quantityText(quantityOf(observed.available, format))
  return `Threshold quantity: ${quantityText(quantity)}, available: ${available}. `
}
