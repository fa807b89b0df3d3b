/** What went wrong, as an answer: a Status in the form the client accepts, with the headers that go with its code. */
import type { Exchange } from '#lib/http/exchange.ts'
import { negotiateStatus } from '#meta/codec/negotiate.ts'
import type { StatusError } from '#meta/status.ts'

import type { WholeAnswer } from '../call.ts'
import { formIn } from './form.ts'
import type { Representation } from './representation.ts'

/** Never refuses: a client that accepts nothing we have gets indented JSON. */
export function errorAnswer(
  encoder: Pick<Representation, 'value'>,
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

/** A webhook may make up any code; HTTP knows up to 599. */
function httpStatus(code = 500): number {
  return code >= 200 && code < 600 ? code : 500
}

function prettyOf(target: string): string {
  const mark = target.indexOf('?')
  return mark < 0 ? '' : (new URLSearchParams(target.slice(mark + 1)).get('pretty') ?? '')
}
