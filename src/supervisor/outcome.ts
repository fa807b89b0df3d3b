/**
 * The possible outcomes of one check of a worker node by the supervisor, with exit codes and texts for the scripts that
 * run it.
 */
import type { ProcessName } from './process-names.ts'

/** A temporary failure; a later attempt may succeed. */
export class RetryError extends Error {
  override readonly name = 'RetryError'
}

/** A permanent failure that needs manual intervention. */
export class CrashError extends Error {
  override readonly name = 'CrashError'
}

export type Outcome =
  | { readonly kind: 'ok'; readonly started: readonly ProcessName[] }
  | { readonly kind: 'crash' | 'retry'; readonly message: string }

/** The exit codes that existing scripts expect. */
export const EXIT_CODES: Readonly<Record<Outcome['kind'], number>> = { ok: 0, crash: 1, retry: 2 }

/** The text that existing agents search for. */
export const RETRY_SUFFIX = 'agent retry'

export function describeOutcome(outcome: Outcome): string {
  if (outcome.kind === 'ok')
    return outcome.started.length === 0 ? 'nothing was missing' : `started ${outcome.started.join(', ')}`
  return outcome.kind === 'retry' ? `${outcome.message}, ${RETRY_SUFFIX}` : outcome.message
}
