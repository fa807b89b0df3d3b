/** Amounts of CPU and memory as numbers, and as text for people. */
import { parseQuantity, type Quantity, quantityNumber } from '#meta/quantity.ts'

/** CPU in cores, memory in bytes. */
export interface Use {
  readonly cpu: number
  readonly memory: number
}

export type Resource = keyof Use

export const RESOURCES: readonly Resource[] = ['cpu', 'memory']

/** Quantities of honest servers are shorter. */
const MAX_LETTERS = 64
/** Beyond all machines. Greater values would break the scale of charts. */
const MAX_AMOUNT = 2 ** 63

/** Undefined for values that are no amount: not a quantity, negative or not finite. */
export function amountOf(value: unknown): number | undefined {
  if (typeof value !== 'string' || value.length > MAX_LETTERS) return undefined
  try {
    return numberOf(parseQuantity(value))
  } catch {
    return undefined
  }
}

export function numberOf(quantity: Quantity): number | undefined {
  const amount = quantityNumber(quantity)
  return amount >= 0 && Number.isFinite(amount) ? Math.min(amount, MAX_AMOUNT) : undefined
}

/** Undefined if either amount is missing. */
export function useOf(list: unknown): Use | undefined {
  if (typeof list !== 'object' || list === null) return undefined
  const { cpu, memory } = list as Readonly<Record<string, unknown>>
  const [cores, bytes] = [amountOf(cpu), amountOf(memory)]
  return cores === undefined || bytes === undefined ? undefined : { cpu: cores, memory: bytes }
}

export function sumOf(uses: Iterable<Use>): Use {
  let [cpu, memory] = [0, 0]
  for (const use of uses) {
    cpu += use.cpu
    memory += use.memory
  }
  return { cpu, memory }
}

const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']

/** `250m` and `1.5` cores; `64Mi`. */
export function amountText(resource: Resource, amount: number): string {
  return resource === 'cpu' ? coresText(amount) : bytesText(amount)
}

function coresText(cores: number): string {
  if (cores >= 1) return threeDigits(cores)
  const milli = Math.round(cores * 1000)
  if (milli >= 1000) return '1'
  return milli === 0 && cores > 0 ? '<1m' : `${milli}m`
}

function bytesText(bytes: number): string {
  let [rest, at] = [bytes, 0]
  for (; rest >= 1000 && at < BINARY.length - 1; at++) rest /= 1024
  return `${threeDigits(rest)}${BINARY[at] ?? ''}`
}

function threeDigits(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en')
  return String(Number(value.toPrecision(3)))
}

/** `30 %`; undefined without a whole. */
export function shareText(part: number, whole: number | undefined): string | undefined {
  if (whole === undefined || whole <= 0) return undefined
  const percent = (100 * part) / whole
  if (percent > 999) return '>999 %'
  return percent > 0 && percent < 1 ? '<1 %' : `${Math.round(percent)} %`
}
