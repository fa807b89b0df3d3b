/** Encodes an error as a Status in a form that the client accepts, with the headers of its code. */
import type { Exchange } from '#lib/http/exchange.ts'
import { negotiateStatus } from '#meta/codec/negotiate.ts'
import type { StatusError } from '#meta/status.ts'

import type { WholeAnswer } from './call.ts'
import { formIn } from './response-form.ts'
import type { ValueEncoder } from './value-encoder.ts'

/** Never fails: a client that accepts no supported form gets indented JSON. */
export function errorAnswer(
  encoder: ValueEncoder,
  { headers, path }: Pick<Exchange, 'headers' | 'path'>,
  { status }: StatusError,
): WholeAnswer {
  const negotiated = negotiateStatus(headers.accept ?? '')
  const form = formIn(negotiated, prettyOf(path), headers['user-agent'] ?? '')
  const answer = encoder.value(status, form, httpStatus(status.code))
  const retry = status.details?.retryAfterSeconds
  return {
    ...answer,
    headers: {
      ...(retry === undefined ? {} : { 'Retry-After': String(retry) }),
      ...(status.code === 403 ? { 'X-Content-Type-Options': 'nosniff' } : {}),
    },
  }
}

/** A webhook may return any code; HTTP ends at 599. */
function httpStatus(code = 500): number {
  return code >= 200 && code < 600 ? code : 500
}

function prettyOf(target: string): string {
  const mark = target.indexOf('?')
  return mark < 0 ? '' : (new URLSearchParams(target.slice(mark + 1)).get('pretty') ?? '')
}
