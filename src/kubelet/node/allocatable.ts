/** Computes node allocatable: capacity minus system-reserved, kube-reserved and hard eviction thresholds. Pure. */
import { goQuote } from '#lib/go/text.ts'
import {
  addQuantities,
  isZeroQuantity,
  parseQuantity,
  type Quantity,
  quantityOf,
  quantitySign,
  quantityText,
  quantityValue,
  subtractQuantities,
} from '#meta/quantity.ts'

type ResourceAmounts = Readonly<Record<string, string>>

/** Fields of KubeletConfiguration with the same names. */
export interface Reserved {
  readonly systemReserved?: ResourceAmounts
  readonly kubeReserved?: ResourceAmounts
  readonly evictionHard?: ResourceAmounts
}

/** Reservations of a kubelet without configuration. */
const PLAIN: Reserved = { evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '10%' } }

/** The resource that an eviction signal reserves. Other signals reserve nothing. */
const SIGNAL_RESOURCES: Readonly<Record<string, string>> = {
  'memory.available': 'memory',
  'nodefs.available': 'ephemeral-storage',
}

const SIGNALS = new Set([
  'memory.available',
  'allocatableMemory.available',
  'pid.available',
  ...['nodefs', 'imagefs', 'containerfs'].flatMap((fs) => [`${fs}.available`, `${fs}.inodesFree`]),
])

/** Capacity minus reservations, at least zero. */
function withoutReserved(capacity: ResourceAmounts, reserved: Reserved): Map<string, Quantity> {
  const left = Object.entries(capacity).map(([name, text]) => {
    const all = parseQuantity(text)
    return [name, atLeastNone(subtractQuantities(all, reservationOf(name, all, reserved)))] as const
  })
  return new Map(left)
}

/** Limit of the cgroup of all pods. It ignores eviction thresholds and does not subtract huge pages from memory. */
export function enforceableOf(
  capacity: ResourceAmounts,
  { systemReserved = {}, kubeReserved = {} }: Reserved,
): ResourceAmounts {
  const left = withoutReserved(capacity, { systemReserved, kubeReserved })
  return Object.fromEntries([...left].map(([name, quantity]) => [name, quantityText(quantity)]))
}

export function allocatableOf(capacity: ResourceAmounts, reserved: Reserved = PLAIN): Record<string, string> {
  const own = withoutReserved(capacity, reserved)
  const memory = own.get('memory')
  if (memory !== undefined) own.set('memory', atLeastNone(withoutHugePages(memory, capacity)))
  return Object.fromEntries([...own].map(([name, quantity]) => [name, quantityText(quantity)]))
}

/** Pages reserved as huge pages are not available as memory. */
function withoutHugePages(memory: Quantity, capacity: ResourceAmounts): Quantity {
  return Object.entries(capacity)
    .filter(([name]) => name.startsWith('hugepages-'))
    .reduce((left, [, text]) => subtractQuantities(left, parseQuantity(text)), memory)
}

function atLeastNone(quantity: Quantity): Quantity {
  return quantitySign(quantity) < 0 ? { ...quantityOf(0), format: quantity.format } : quantity
}

/** The reserved amount of one resource. `all` is its capacity. */
export function reservationOf(
  name: string,
  all: Quantity,
  { systemReserved, kubeReserved, evictionHard }: Reserved,
): Quantity {
  const reservations = [systemReserved?.[name], kubeReserved?.[name]]
    .filter((text) => text !== undefined)
    .map((text) => parseQuantity(text))
  const evicted = Object.entries(evictionHard ?? {})
    .filter(([signal]) => SIGNAL_RESOURCES[signal] === name)
    .map(([, text]) => thresholdOf(text, all))
  return [...reservations, ...evicted].reduce((sum, one) => addQuantities(sum, one), quantityOf(0))
}

/** Percentages are single-precision floats, as in upstream, so that allocatable is the same number. */
function thresholdOf(text: string, all: Quantity): Quantity {
  if (!text.endsWith('%')) return parseQuantity(text)
  if (text === '100%') return quantityOf(0)
  const share = Math.fround(Math.fround(Number(text.slice(0, -1))) / 100)
  return quantityOf(Math.trunc(quantityValue(all) * share), 'BinarySI')
}

const RESERVABLE = ['cpu', 'memory', 'ephemeral-storage', 'pid']

/** The first error in the reservations, with upstream's text. */
export function reservedError({ systemReserved, kubeReserved, evictionHard }: Reserved): string | undefined {
  const kube = listError(kubeReserved)
  if (kube !== undefined) return `--kube-reserved value failed to parse: ${kube}`
  const system = listError(systemReserved)
  if (system !== undefined) return `--system-reserved value failed to parse: ${system}`
  return thresholdsError(evictionHard)
}

function listError(words: ResourceAmounts = {}): string | undefined {
  for (const [name, text] of Object.entries(words)) {
    if (!RESERVABLE.includes(name)) return `cannot reserve ${goQuote(name)} resource`
    const parsed = quantityIn(text)
    if (typeof parsed === 'string')
      return `failed to parse quantity ${goQuote(text)} for ${goQuote(name)} resource: ${parsed}`
    if (quantitySign(parsed) < 0) return `resource quantity for ${goQuote(name)} cannot be negative: ${text}`
  }
  return undefined
}

export function thresholdsError(words: ResourceAmounts = {}): string | undefined {
  return Object.entries(words)
    .map(([signal, text]) => thresholdError(signal, text))
    .find((error) => error !== undefined)
}

function thresholdError(signal: string, text: string): string | undefined {
  if (!SIGNALS.has(signal)) return `unsupported eviction signal ${signal}`
  if (text.endsWith('%')) {
    const share = Number(text.slice(0, -1))
    if (text === '%' || Number.isNaN(share)) {
      return `strconv.ParseFloat: parsing ${goQuote(text.slice(0, -1))}: invalid syntax`
    }
    if (share < 0) return `eviction percentage threshold ${signal} must be >= 0%: ${text}`
    return share > 100 ? `eviction percentage threshold ${signal} must be <= 100%: ${text}` : undefined
  }
  const parsed = quantityIn(text)
  if (typeof parsed === 'string') return parsed
  const isPositive = quantitySign(parsed) > 0 && !isZeroQuantity(parsed)
  return isPositive ? undefined : `eviction threshold ${signal} must be positive: ${quantityText(parsed)}`
}

function quantityIn(text: string): Quantity | string {
  try {
    return parseQuantity(text)
  } catch (cause) {
    return (cause as Error).message
  }
}

/** The error, with upstream's text, when reservations exceed the capacity. */
export function overReserved(capacity: ResourceAmounts, reserved: Reserved): string | undefined {
  const over = Object.entries(capacity).flatMap(([name, text]) => {
    const all = parseQuantity(text)
    const kept = reservationOf(name, all, reserved)
    if (quantitySign(subtractQuantities(all, kept)) >= 0) return []
    return [
      `Resource ${goQuote(name)} has a reservation of ${quantityText(kept)} but capacity of ${text}. Expected capacity >= reservation.`,
    ]
  })
  return over.length === 0 ? undefined : `invalid Node Allocatable configuration. ${over.join(' ')}`
}
