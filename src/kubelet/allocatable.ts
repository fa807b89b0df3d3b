/** What of a node pods may have: all of it but what is kept for the machine, for Kubernetes and for evictions. Pure. */
import { goQuote } from '#lib/go-text.ts'
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

type Words = Readonly<Record<string, string>>

/** As the fields of a KubeletConfiguration say it. */
export interface Reserved {
  readonly systemReserved?: Words
  readonly kubeReserved?: Words
  readonly evictionHard?: Words
}

/** What a kubelet keeps that was told nothing. */
const PLAIN: Reserved = { evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '10%' } }

/** Which resource a signal of evictions is about, as far as pods can have it. */
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

/** Without what is kept, and no less than nothing. */
function withoutReserved(capacity: Words, reserved: Reserved): Map<string, Quantity> {
  const left = Object.entries(capacity).map(([name, text]) => {
    const all = parseQuantity(text)
    return [name, atLeastNone(subtractQuantities(all, reservationOf(name, all, reserved)))] as const
  })
  return new Map(left)
}

/** What the cgroup of all pods is kept to: evictions come before it is reached, and huge pages are counted apart. */
export function enforceableOf(capacity: Words, { systemReserved = {}, kubeReserved = {} }: Reserved): Words {
  const left = withoutReserved(capacity, { systemReserved, kubeReserved })
  return Object.fromEntries([...left].map(([name, quantity]) => [name, quantityText(quantity)]))
}

export function allocatableOf(capacity: Words, reserved: Reserved = PLAIN): Record<string, string> {
  const own = withoutReserved(capacity, reserved)
  const memory = own.get('memory')
  if (memory !== undefined) own.set('memory', atLeastNone(withoutHugePages(memory, capacity)))
  return Object.fromEntries([...own].map(([name, quantity]) => [name, quantityText(quantity)]))
}

/** Memory in huge pages is nobody else's. */
function withoutHugePages(memory: Quantity, capacity: Words): Quantity {
  return Object.entries(capacity)
    .filter(([name]) => name.startsWith('hugepages-'))
    .reduce((left, [, text]) => subtractQuantities(left, parseQuantity(text)), memory)
}

function atLeastNone(quantity: Quantity): Quantity {
  return quantitySign(quantity) < 0 ? { ...quantityOf(0), format: quantity.format } : quantity
}

/** What is kept from pods of one resource. `all`: that there is of it. */
export function reservationOf(
  name: string,
  all: Quantity,
  { systemReserved, kubeReserved, evictionHard }: Reserved,
): Quantity {
  const said = [systemReserved?.[name], kubeReserved?.[name]]
    .filter((text) => text !== undefined)
    .map((text) => parseQuantity(text))
  const evicted = Object.entries(evictionHard ?? {})
    .filter(([signal]) => SIGNAL_RESOURCES[signal] === name)
    .map(([, text]) => thresholdOf(text, all))
  return [...said, ...evicted].reduce((sum, one) => addQuantities(sum, one), quantityOf(0))
}

/** Shares are of single precision, as upstream has them: what is left to pods is the same number. */
function thresholdOf(text: string, all: Quantity): Quantity {
  if (!text.endsWith('%')) return parseQuantity(text)
  if (text === '100%') return quantityOf(0)
  const share = Math.fround(Math.fround(Number(text.slice(0, -1))) / 100)
  return quantityOf(Math.trunc(quantityValue(all) * share), 'BinarySI')
}

const RESERVABLE = ['cpu', 'memory', 'ephemeral-storage', 'pid']

/** What is wrong with what was said, in upstream's words; the first of it. */
export function reservedError({ systemReserved, kubeReserved, evictionHard }: Reserved): string | undefined {
  const kube = listError(kubeReserved)
  if (kube !== undefined) return `--kube-reserved value failed to parse: ${kube}`
  const system = listError(systemReserved)
  if (system !== undefined) return `--system-reserved value failed to parse: ${system}`
  return thresholdsError(evictionHard)
}

function listError(words: Words = {}): string | undefined {
  for (const [name, text] of Object.entries(words)) {
    if (!RESERVABLE.includes(name)) return `cannot reserve ${goQuote(name)} resource`
    const parsed = quantityIn(text)
    if (typeof parsed === 'string')
      return `failed to parse quantity ${goQuote(text)} for ${goQuote(name)} resource: ${parsed}`
    if (quantitySign(parsed) < 0) return `resource quantity for ${goQuote(name)} cannot be negative: ${text}`
  }
  return undefined
}

export function thresholdsError(words: Words = {}): string | undefined {
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

/** Pods cannot be left less than nothing. In upstream's words. */
export function overReserved(capacity: Words, reserved: Reserved): string | undefined {
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
