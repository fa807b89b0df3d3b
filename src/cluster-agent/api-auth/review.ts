/** Parses a TokenReview, verifies its token and builds the response. A refused token gets no reason. */
import type { Logger } from '#lib/log/log.ts'

import { type AuthRecords, verifyToken } from './records.ts'

const VERSIONS = ['authentication.k8s.io/v1', 'authentication.k8s.io/v1beta1']
const KIND = 'TokenReview'

export interface Review {
  readonly apiVersion: string
  readonly token: string
}

/** Undefined: the text is no TokenReview of a known version. */
export function parseReview(text: string): Review | undefined {
  let review: unknown
  try {
    review = JSON.parse(text)
  } catch {
    return undefined
  }
  const { apiVersion, kind, spec } = fieldsOf(review)
  const { token } = fieldsOf(spec)
  if (typeof apiVersion !== 'string' || !VERSIONS.includes(apiVersion) || kind !== KIND) return undefined
  return typeof token === 'string' ? { apiVersion, token } : undefined
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}
}

export interface ReviewTools {
  /** Undefined: not known yet. */
  readonly records: AuthRecords | undefined
  readonly nowMs: number
  readonly log: Pick<Logger, 'info'>
}

/** API servers cache a refusal, but not an error, which says that the answer may be another one soon. */
export function answerReview({ apiVersion, token }: Review, { records, nowMs, log }: ReviewTools): object {
  const answer = (status: object): object => ({ apiVersion, kind: KIND, status })
  if (records === undefined)
    return answer({ authenticated: false, error: 'the tokens of the cluster are not known yet' })
  const verdict = verifyToken(records, token, nowMs)
  if (!('refused' in verdict)) return answer({ authenticated: true, user: verdict })
  log.info('Failed to authenticate a token', { reason: verdict.refused })
  return answer({ authenticated: false })
}
