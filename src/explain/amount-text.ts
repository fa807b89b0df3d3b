/** Amounts of resources for people: `1.5 cpu`, `512Mi memory`. */
import { quantityOf, quantityText } from '#meta/quantity.ts'

const MI = 2 ** 20
const GI = 2 ** 30

export type Rounding = 'up' | 'down' | 'nearest'

const ROUND: Readonly<Record<Rounding, (value: number) => number>> = {
  up: Math.ceil,
  down: Math.floor,
  nearest: Math.round,
}

/** Without the name. `amount` is in milli-CPU, bytes or a count, as the scheduler computes; bytes are rounded. */
export function amountText(resource: string, amount: number, rounding: Rounding = 'nearest'): string {
  if (resource === 'cpu') return String(amount / 1000)
  if (resource !== 'memory' && resource !== 'ephemeral-storage') return String(amount)
  if (Math.abs(amount) < MI) return quantityText(quantityOf(amount, 'BinarySI'))
  const [unit, name] = Math.abs(amount) >= GI ? [GI, 'Gi'] : [MI, 'Mi']
  return `${ROUND[rounding]((amount / unit) * 100) / 100}${name}`
}

/** `1 node`, `3 nodes`. */
export function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** `a, b, c and 4 more`. */
export function someOf(names: readonly string[], most = 3): string {
  const shown = names.slice(0, most).join(', ')
  return names.length > most ? `${shown} and ${names.length - most} more` : shown
}
