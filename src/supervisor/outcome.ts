/** How an attempt to get a node going ends, and what the process says of it to whoever started it. */
import type { ProcessName } from './process-names.ts'

/** Something that another attempt, a little later, may not meet. */
export class RetryError extends Error {
  override readonly name = 'RetryError'
}

/** Something that no attempt will get past: a person has to look. */
export class CrashError extends Error {
  override readonly name = 'CrashError'
}

export type Outcome =
  | { readonly kind: 'ok'; readonly started: readonly ProcessName[] }
  | { readonly kind: 'crash' | 'retry'; readonly message: string }

/** What scripts around it have always looked at. */
export const EXIT_CODES: Readonly<Record<Outcome['kind'], number>> = { ok: 0, crash: 1, retry: 2 }

/** What an agent reads of a node that is worth another try; the words are those it has always looked for. */
export const RETRY_SUFFIX = 'agent retry'

export function describeOutcome(outcome: Outcome): string {
  if (outcome.kind === 'ok')
    return outcome.started.length === 0 ? 'nothing was missing' : `started ${outcome.started.join(', ')}`
  return outcome.kind === 'retry' ? `${outcome.message}, ${RETRY_SUFFIX}` : outcome.message
}
