/**
 * Conversion by webhook: sends objects of one version in a review and receives them in another. The webhook may not
 * change immutable metadata, which is restored. Errors have upstream's texts.
 */
import type { CustomResourceDefinition } from '#apis/apiextensions/v1.ts'
import type { WebhookCaller, WebhookClientConfig } from '#apiserver/webhooks/caller.ts'
import type { Clock } from '#lib/clock.ts'
import { isJsonObject, type JsonObject } from '#lib/json/value.ts'
import { type Random, uuid } from '#lib/random.ts'
import { withinSpan } from '#lib/tracing/active.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'
import type { KubeObject, ObjectMeta } from '#meta/object.ts'
import { failure } from '#meta/status-errors.ts'
import type { StatusError } from '#meta/status.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import type { Converter } from './custom-resource.ts'

export interface ConversionParts {
  readonly caller: WebhookCaller
  readonly clock: Clock
  readonly random: Random
  readonly metrics: ServerMeters
}

const TIMEOUT_MS = 30_000
/** The maximum size of a review, which a webhook can answer in time although upstream sends objects one by one. */
const REVIEW_OBJECTS = 100
const REVIEW_BYTES = 1 << 20
/** A response may be larger than the request, by labels and renamed fields. */
const ANSWER_FACTOR = 4

/** Undefined if versions differ only in their name. */
export function converterOf(
  { spec, metadata }: CustomResourceDefinition,
  parts: ConversionParts,
): Converter | undefined {
  const { strategy, webhook } = spec.conversion ?? {}
  if (strategy !== 'Webhook' || webhook?.clientConfig === undefined) return undefined
  const version = (webhook.conversionReviewVersions ?? []).find((one) => one === 'v1' || one === 'v1beta1') ?? 'v1'
  const review = { group: 'apiextensions.k8s.io', version, kind: 'ConversionReview' }
  const exchange = new Exchange(metadata.name ?? '', webhook.clientConfig, review, parts)
  const meter = createMeter(metadata.name ?? '', parts)
  return {
    async convert(objects, apiVersion) {
      const converted: KubeObject[] = []
      for (const some of reviewsOf(objects)) {
        converted.push(...(await meter(some, apiVersion, () => exchange.ask(some, apiVersion))))
      }
      return converted
    },
  }
}

/** Batches of consecutive objects of one version that fit into a review. */
function* reviewsOf(objects: readonly KubeObject[]): Generator<readonly KubeObject[]> {
  let some: KubeObject[] = []
  let size = 0
  for (const object of objects) {
    const isOther = some[0] !== undefined && some[0].apiVersion !== object.apiVersion
    if (isOther || some.length >= REVIEW_OBJECTS || size >= REVIEW_BYTES) {
      yield some
      some = []
      size = 0
    }
    some.push(object)
    size += encodeJson(object).length
  }
  if (some.length > 0) yield some
}

type Fail = (type: string, what: string) => ConversionFailure

/** The error, by its name in metrics, and the text for clients. */
class ConversionFailure extends Error {
  readonly type: string
  readonly refusal: StatusError

  constructor(type: string, refusal: StatusError) {
    super(refusal.message)
    this.type = type
    this.refusal = refusal
  }
}

type Measure = <T>(objects: readonly KubeObject[], apiVersion: string, work: () => Promise<T>) => Promise<T>

/** Counts conversions of one definition under upstream's names. Throws StatusError on failure. */
function createMeter(definition: string, { clock, metrics }: ConversionParts): Measure {
  const requests = metrics.family('apiserver_conversion_webhook_request_total')
  const durations = metrics.family('apiserver_conversion_webhook_duration_seconds')
  const ofDefinitions = metrics.family('apiserver_crd_conversion_webhook_duration_seconds')
  return async (objects, apiVersion, work) => {
    const startMs = clock.elapsed()
    const note = (failureType?: string): void => {
      const seconds = (clock.elapsed() - startMs) / 1000
      const isGood = failureType === undefined
      const outcome = [
        isGood ? 'success' : 'failure',
        isGood ? '' : `conversion_webhook_${failureType}_failure`,
      ] as const
      requests.labels(...outcome).inc()
      durations.labels(...outcome).observe(seconds)
      const [from, to] = [objects[0]?.apiVersion ?? '', apiVersion].map((text) => text.slice(text.indexOf('/') + 1))
      ofDefinitions.labels(definition, from ?? '', to ?? '', String(isGood)).observe(seconds)
    }
    try {
      const done = await work()
      note()
      return done
    } catch (cause) {
      if (!(cause instanceof ConversionFailure)) throw cause
      note(cause.type)
      throw cause.refusal
    }
  }
}

class Exchange {
  /** Of the definition. */
  readonly #name: string
  readonly #config: WebhookClientConfig
  readonly #review: GroupVersionKind
  readonly #parts: ConversionParts

  constructor(name: string, config: WebhookClientConfig, review: GroupVersionKind, parts: ConversionParts) {
    this.#name = name
    this.#config = config
    this.#review = review
    this.#parts = parts
  }

  /** All objects of one version. Throws ConversionFailure. */
  async ask(objects: readonly KubeObject[], apiVersion: string): Promise<KubeObject[]> {
    const { kind = '', apiVersion: from = '' } = objects[0] ?? {}
    const fail: Fail = (type, what) => {
      const message = `conversion webhook for ${from}, Kind=${kind} ${what}`
      return new ConversionFailure(type, failure({ code: 500, message }))
    }
    const uid = uuid(this.#parts.random)
    const response = await withinSpan(
      'Call conversion webhook',
      () => ({
        'custom-resource-definition': this.#name,
        'desired-api-version': apiVersion,
        'object-count': objects.length,
        UID: uid,
      }),
      () => this.#call({ uid, desiredAPIVersion: apiVersion, objects }, fail),
    )
    const converted = convertedIn(response, this.#review.version === 'v1' ? uid : undefined)
    if (typeof converted === 'string') throw fail('malformed_response', `failed: ${converted}`)
    if (converted.length !== objects.length) {
      throw fail('partial_response', `returned ${converted.length} objects, expected ${objects.length}`)
    }
    return objects.map((object, at) => {
      const outcome = settled(object, converted[at], { apiVersion, at, isAlone: objects.length === 1 })
      if (typeof outcome === 'string') throw fail('invalid_converted_object', outcome)
      return outcome
    })
  }

  async #call(request: object, fail: Fail): Promise<JsonObject> {
    const { kind } = this.#review
    const body = encodeJson({ kind, apiVersion: apiVersionOf(this.#review), request, response: NO_RESPONSE })
    try {
      const { object } = await this.#parts.caller.call({
        config: this.#config,
        body,
        review: this.#review,
        timeoutMs: TIMEOUT_MS,
        limitBytes: Math.max(8 << 20, body.length * ANSWER_FACTOR),
      })
      return object
    } catch (cause) {
      throw fail('call', `failed: ${(cause as Error).message}`)
    }
  }
}

/** Upstream sends an empty response along. */
const NO_RESPONSE = { uid: '', convertedObjects: null, result: { metadata: {} } }

/** The objects of a response, or the error. The response must repeat `uid`. */
function convertedIn({ response }: JsonObject, uid: string | undefined): readonly unknown[] | string {
  if (!isJsonObject(response)) return 'no response provided'
  const { uid: responseUid = '', result, convertedObjects } = response
  if (uid !== undefined && responseUid !== uid)
    return `expected response.uid="${uid}", got ${JSON.stringify(responseUid)}`
  const { status = '', message = '' } = isJsonObject(result) ? result : {}
  if (status === 'Success') return Array.isArray(convertedObjects) ? convertedObjects : []
  return typeof message === 'string' && message !== ''
    ? message
    : `response.result.status was '${typeof status === 'string' ? status : ''}', not 'Success'`
}

interface ObjectPosition {
  readonly apiVersion: string
  readonly at: number
  readonly isAlone: boolean
}

/** The converted object with all immutable parts restored; or the error. */
function settled(
  object: KubeObject,
  converted: unknown,
  { apiVersion, at, isAlone }: ObjectPosition,
): KubeObject | string {
  const what = isAlone ? 'object' : 'converted object'
  if (!isJsonObject(converted)) return `returned invalid ${what} at index ${at}: no object`
  const { apiVersion: version = '', kind = '', metadata, ...rest } = converted as Partial<KubeObject>
  if (version !== apiVersion) {
    return `returned invalid ${what} at index ${at}: invalid groupVersion (expected ${apiVersion}, received ${version})`
  }
  if (kind !== object.kind) {
    return `returned invalid ${what} at index ${at}: invalid kind (expected ${object.kind}, received ${kind})`
  }
  const where = isAlone ? '' : ` at index ${at}`
  const changed = changedIdentity(object.metadata, metadata ?? {})
  if (changed !== undefined) return `returned invalid ${what}${where}: ${changed}`
  if (metadata === undefined) {
    return `returned invalid metadata${isAlone ? '' : ` in object${where}`}: missing metadata in converted object`
  }
  return { kind, apiVersion, metadata: restored(object.metadata, metadata), ...rest }
}

function changedIdentity(before: ObjectMeta, after: ObjectMeta): string | undefined {
  const same = [
    ['name', before.name, after.name],
    ['namespace', before.namespace, after.namespace],
    ['UID', before.uid, after.uid],
  ] as const
  const other = same.find(([, one = '', now = '']) => one !== now)
  return other && `must have the same ${other[0]}: ${other[1] ?? ''} != ${other[2] ?? ''}`
}

/** The webhook may change only labels and annotations. */
function restored(before: ObjectMeta, { labels, annotations }: ObjectMeta): ObjectMeta {
  const { labels: _, annotations: __, ...rest } = before
  return { ...rest, ...(labels !== undefined && { labels }), ...(annotations !== undefined && { annotations }) }
}
