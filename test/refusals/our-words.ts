/**
 * The expected messages of refusal cases in which upstream prints a Go struct and we print the value as it was sent.
 */
import type { Refusal } from './case.ts'

/** From the first brace or bracket behind `value: ` to the last one before the words. */
const SHOWN = /(?<=value: )(?:[[{].*[\]}](?=: )|\{.*\}$)/

export function shownAs(value: unknown, because = 'upstream prints a Go struct'): Pick<Refusal, 'ours'> {
  return { ours: { because, instead: [SHOWN, JSON.stringify(value)] } }
}
