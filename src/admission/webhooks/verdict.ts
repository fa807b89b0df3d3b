/** The result of calling one webhook: a response, or the reason why there is none. */
import type { Attributes } from '#apiserver/registry/admission.ts'
import { type WebhookCaller, WebhookError } from '#apiserver/webhooks/caller.ts'
import type { Clock } from '#lib/clock.ts'
import { goQuote } from '#lib/go/text.ts'
import { HttpError } from '#lib/http/http-error.ts'
import { parseJson } from '#lib/json/json.ts'
import { isJsonObject, type JsonValue } from '#lib/json/value.ts'
import { type Random, uuid } from '#lib/random.ts'
import { withinSpan } from '#lib/tracing/active.ts'
import { goWord } from '#meta/codec/decode-state.ts'
import type { DecodedObject } from '#meta/codec/object.ts'
import { badRequestError, timeoutError } from '#meta/status-errors.ts'
import { type Status, StatusError } from '#meta/status.ts'
import { qualifiedName } from '#meta/validation/names.ts'

import type { Form } from '../matching/forms.ts'
import type { Hook } from './hooks.ts'
import { type ReviewInput, readResponse, type Response, reviewKind, reviewText } from './review.ts'

export type Verdict =
  | { readonly outcome: 'allowed'; /** Operations. */ readonly patch?: readonly JsonValue[] }
  /** The webhook refused. */
  | { readonly outcome: 'denied'; readonly error: StatusError }
  /** There is no valid response: the failure policy decides. `code` is for metrics. */
  | ({ readonly outcome: 'unanswered'; readonly error: Error; readonly code: number } & Partial<Silence>)
  /** The response is unusable, whatever the failure policy. */
  | { readonly outcome: 'unusable'; readonly error: StatusError }

/** The reasons for a missing response. */
interface Silence {
  /** The client has gone. */
  readonly isGivenUp: boolean
  /** The request's own time was over first. A timer may fire slightly early, so clocks are not compared. */
  readonly isLate: boolean
}

export interface Asking {
  readonly caller: WebhookCaller
  readonly random: Random
  readonly clock: Clock
}

/** True if the request has ended: then nothing is written. */
export function isOver(
  { clock }: Pick<Asking, 'clock'>,
  { signal, deadlineMs = Infinity }: Attributes,
  verdict?: Verdict,
): boolean {
  const isLate = verdict?.outcome === 'unanswered' && verdict.isLate === true
  return isLate || signal.aborted || clock.elapsed() >= deadlineMs
}

export function requestTimeout(): StatusError {
  return timeoutError('request did not complete within requested timeout', 0)
}

/** The default timeout of a webhook. */
const TIMEOUT_SECONDS = 10

/** Calls one webhook; passes on its warnings and annotations. */
export async function askWebhook(
  { caller, random, clock }: Asking,
  { spec, configuration }: Hook,
  { form, isMutating }: { readonly form: Form; readonly isMutating: boolean },
  input: ReviewInput,
): Promise<Verdict> {
  const { attributes } = input
  const refusal = dryRunRefusal(spec.name, spec.sideEffects, attributes)
  if (refusal !== undefined) return { outcome: 'unusable', error: refusal }
  const review = reviewKind(spec.admissionReviewVersions ?? [])
  if (review === undefined) {
    const why = 'webhook does not accept known AdmissionReview versions (v1, v1beta1)'
    return unanswered(spec.name, `could not create admission objects: ${why}`, 400)
  }
  const uid = uuid(random)
  const leftMs = (attributes.deadlineMs ?? Infinity) - clock.elapsed()
  const timeoutMs = Math.max(Math.min((spec.timeoutSeconds ?? TIMEOUT_SECONDS) * 1000, leftMs), 0)
  let answer: DecodedObject
  try {
    const body = reviewText(review, uid, form, input)
    const call = { config: spec.clientConfig, body, review, timeoutMs, signal: attributes.signal }
    const { addressed, subresource, operation } = attributes
    const resource = `${addressed.group}/${addressed.version}, Resource=${addressed.resource}`
    answer = await withinSpan(
      `Call ${isMutating ? 'mutating' : 'validating'} webhook`,
      () => ({ configuration, webhook: spec.name, resource, subresource, operation, UID: uid }),
      () => caller.call(call),
    )
  } catch (error) {
    return failedCall(spec.name, error, {
      isGivenUp: attributes.signal.aborted,
      isLate: isTimeout(error) && timeoutMs >= leftMs,
    })
  }
  try {
    return verdictOf(spec.name, readResponse(answer, uid, isMutating), attributes)
  } catch (error) {
    return unanswered(spec.name, `received invalid webhook response: ${(error as Error).message}`, 503)
  }
}

/** Old configurations may contain webhooks with side effects. */
function dryRunRefusal(name: string, sideEffects: string, { dryRun }: Attributes): StatusError | undefined {
  if (!dryRun || sideEffects === 'None' || sideEffects === 'NoneOnDryRun') return undefined
  return badRequestError(`admission webhook ${goQuote(name)} does not support dry run`)
}

function unanswered(name: string, why: string, code: number, silence?: Silence): Verdict {
  const error = new Error(`failed calling webhook ${goQuote(name)}: ${why}`)
  return { outcome: 'unanswered', error, code, ...silence }
}

function failedCall(name: string, error: unknown, silence: Silence): Verdict {
  if (!(error instanceof WebhookError)) throw error
  const what = error.phase === 'client' ? 'could not get REST client' : 'failed to call webhook'
  return unanswered(name, `${what}: ${error.message}`, error.status, silence)
}

function isTimeout(error: unknown): boolean {
  return error instanceof WebhookError && error.cause instanceof HttpError && error.cause.code === 'timeout'
}

function verdictOf(name: string, response: Response, attributes: Attributes): Verdict {
  for (const [key, value] of Object.entries(response.auditAnnotations)) {
    const whole = `${name}/${key}`
    if (qualifiedName(whole).length === 0) attributes.annotate?.(whole, value)
  }
  // A warning with control characters cannot be a header.
  for (const text of response.warnings) if (text !== '' && !/\p{Cc}/u.test(text)) attributes.warn(text)
  if (!response.allowed) return { outcome: 'denied', error: denial(name, response.status) }
  if (response.patch === undefined) return { outcome: 'allowed' }
  return readPatch(name, response.patch, response.patchType)
}

function readPatch(name: string, bytes: Buffer, patchType: string): Verdict {
  const undecodable = (why: string): Verdict =>
    unanswered(name, `received undecodable patch in webhook response: ${why}`, 503)
  let patch: JsonValue
  try {
    patch = parseJson(bytes)
  } catch (error) {
    return undecodable((error as Error).message)
  }
  if (patch === null) return { outcome: 'allowed' }
  const wrong = (what: JsonValue, type: string): Verdict =>
    undecodable(`json: cannot unmarshal ${goWord(what, false)} into Go value of type jsonpatch.${type}`)
  if (!Array.isArray(patch)) return wrong(patch, 'Patch')
  const odd = patch.find((operation) => operation !== null && !isJsonObject(operation))
  if (odd !== undefined) return wrong(odd, 'Operation')
  if (patch.length === 0) return { outcome: 'allowed' }
  if (patchType !== 'JSONPatch') return unanswered(name, `unsupported patch type ${goQuote(patchType)}`, 400)
  return { outcome: 'allowed', patch }
}

/** The webhook's status as a refusal. */
function denial(name: string, given: Partial<Status> = {}): StatusError {
  const denied = `admission webhook ${goQuote(name)} denied the request`
  const why = given.message || given.reason
  const { metadata = {}, message: _, reason, details, code = 0 } = given
  return new StatusError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata,
    status: given.status === undefined || given.status === 'Success' ? 'Failure' : given.status,
    message: why === undefined ? `${denied} without explanation` : `${denied}: ${why}`,
    ...(reason !== undefined && { reason }),
    ...(details !== undefined && { details }),
    code: Math.max(code, 400),
  })
}
