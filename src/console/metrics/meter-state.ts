/** Whether a cluster measures the use of an object, and why it does not. */
import type { RequestError } from '../api/request.ts'

export type MeterState =
  | { readonly type: 'loading' }
  | { readonly type: 'live' }
  /** The metrics API has no values of the object yet. */
  | { readonly type: 'unmeasured' }
  /** The cluster has no metrics API. */
  | { readonly type: 'absent' }
  | { readonly type: 'failed'; readonly code: number; readonly message: string }

/** Servers answer 404 with a Status for an object, and with plain text for an API that they do not have. */
export function stateAfter({ code, status, message }: RequestError): MeterState {
  if (code !== 404) return { type: 'failed', code, message }
  return { type: status.reason === 'NotFound' ? 'unmeasured' : 'absent' }
}
