/**
 * Translates etcd's errors, and decides whether a call may be retried. The texts are those of etcd's v3rpc/rpctypes
 * (3.4 to 3.6).
 */
import { GrpcError } from '#lib/grpc/status.ts'

import { StorageError, type StorageErrorCode } from '../backend.ts'

/**
 * - `unsent`: the call was not executed and never will be; it may always be retried
 * - `unknown`: it may have been executed, or still be; only a read may be retried
 * - `final`: an answer
 */
export type Outcome = 'unsent' | 'unknown' | 'final'

export interface Verdict {
  readonly code: StorageErrorCode
  readonly outcome: Outcome
}

/** A call that never left this machine, because there was no connection. */
export class UnsentError extends GrpcError {}

const VERDICTS: readonly (readonly [text: string, verdict: Verdict])[] = [
  ['etcdserver: mvcc: required revision has been compacted', { code: 'compacted', outcome: 'final' }],
  ['etcdserver: mvcc: required revision is a future revision', { code: 'future-revision', outcome: 'final' }],
  ['etcdserver: mvcc: database space exceeded', { code: 'no-space', outcome: 'final' }],
  ['etcdserver: no space', { code: 'no-space', outcome: 'final' }],
  ['etcdserver: request is too large', { code: 'too-large', outcome: 'final' }],
  ['etcdserver: too many operations in txn request', { code: 'too-large', outcome: 'final' }],
  ['etcdserver: requested lease not found', { code: 'lease-not-found', outcome: 'final' }],
  ['etcdserver: corrupt', { code: 'corrupt', outcome: 'final' }],
  ['etcdserver: request timed out', { code: 'timeout', outcome: 'unknown' }],
  ['etcdserver: leader changed', { code: 'unavailable', outcome: 'unknown' }],
  ['etcdserver: server stopped', { code: 'unavailable', outcome: 'unknown' }],
  ['etcdserver: no leader', { code: 'unavailable', outcome: 'unsent' }],
  ['etcdserver: not leader', { code: 'unavailable', outcome: 'unsent' }],
  ['etcdserver: not capable', { code: 'unavailable', outcome: 'unsent' }],
  ['etcdserver: too many requests', { code: 'unavailable', outcome: 'unsent' }],
  ['etcdserver: rpc not supported for learner', { code: 'unavailable', outcome: 'unsent' }],
  ['raft proposal dropped', { code: 'unavailable', outcome: 'unsent' }],
  ['etcdserver: invalid auth token', { code: 'unavailable', outcome: 'unsent' }],
  ['etcdserver: revision of auth store is old', { code: 'unavailable', outcome: 'unsent' }],
]

/** True if the member itself answered, rather than our end of the connection. */
export function isAnswer(error: unknown): boolean {
  return error instanceof GrpcError && error.trailers['grpc-status'] !== undefined
}

/** True if the token is the cause: it has expired, or users have changed. */
export function isTokenRefused(error: GrpcError): boolean {
  return isAnswer(error) && /^etcdserver: (?:invalid auth token|revision of auth store is old)/.test(error.message)
}

export function classify(error: GrpcError): Verdict {
  if (error instanceof UnsentError) return { code: 'unavailable', outcome: 'unsent' }
  if (error.code === 'deadlineExceeded') return { code: 'timeout', outcome: 'unknown' }
  if (error.code === 'resourceExhausted' && error.message.includes('larger than max')) {
    return { code: 'too-large', outcome: 'final' }
  }
  if (!isAnswer(error)) return { code: 'unavailable', outcome: error.code === 'internal' ? 'final' : 'unknown' }
  const known = VERDICTS.find(([text]) => error.message.startsWith(text))
  if (known !== undefined) return known[1]
  if (error.message.includes('context deadline exceeded')) return { code: 'timeout', outcome: 'unknown' }
  return { code: 'unavailable', outcome: error.code === 'unavailable' ? 'unknown' : 'final' }
}

const ADVICE: Partial<Record<StorageErrorCode, string>> = {
  'no-space': '; compact, defragment one member after the other, then disarm the alarm (`etcdctl alarm disarm`)',
}

/** The error for the caller. `isWrite`: an unknown outcome matters. */
export function toStorageError(error: GrpcError, { isWrite }: { readonly isWrite: boolean }): StorageError {
  const { code, outcome } = classify(error)
  // An unreadable answer is no refusal: the request was executed.
  if (isWrite && (outcome === 'unknown' || (outcome === 'final' && !isAnswer(error)))) {
    const message = `etcd: ${error.message}; the write may or may not have happened, read to know`
    return new StorageError(code === 'timeout' ? 'timeout' : 'unavailable', message, { cause: error })
  }
  // Users know this text from upstream.
  if (code === 'too-large') return new StorageError(code, error.message, { cause: error })
  return new StorageError(code, `etcd: ${error.message}${ADVICE[code] ?? ''}`, { cause: error })
}
