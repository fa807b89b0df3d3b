/** Sends requests for unstructured objects of any kind. */
import { type ApiClient, type ApiRequest, pathOf } from '#client/api-client.ts'
import type { ServedKind } from '#client/discovery.ts'
import { readWatchEvents } from '#client/watch-events.ts'
import { HttpError } from '#lib/http/http-error.ts'
import { readJson } from '#lib/json/json.ts'
import type { JsonObject } from '#lib/json/value.ts'
import type { KubeObject } from '#meta/object.ts'
import type { WatchEvent } from '#meta/watch.ts'

import { ExitError, KubectlError } from '../errors.ts'

/** An unstructured object. */
export interface AnyObject extends KubeObject {
  [field: string]: unknown
}

/** An object, a collection if the name is empty, or a subresource. */
export interface Target {
  readonly kind: ServedKind
  readonly namespace?: string
  readonly name?: string
  readonly subresource?: string
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>

export interface RequestOptions {
  readonly query?: Query
  readonly accept?: string | undefined
}

const PATCH_TYPES = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

export type PatchType = keyof typeof PATCH_TYPES

const MAX_BYTES = 1 << 30

/** All methods throw StatusError, or ConnectionError without a connection. */
export class Rest {
  readonly #client: ApiClient
  readonly #signal: AbortSignal

  constructor(client: ApiClient, signal: AbortSignal) {
    this.#client = client
    this.#signal = signal
  }

  /** An object, a collection or a table, depending on `accept`. */
  get(target: Target, asking: RequestOptions = {}): Promise<AnyObject> {
    return this.#json('GET', target, asking)
  }

  create(target: Target, object: object, query: Query = {}): Promise<AnyObject> {
    return this.#json('POST', target, { query, body: object })
  }

  replace(target: Target, object: object, query: Query = {}): Promise<AnyObject> {
    return this.#json('PUT', target, { query, body: object })
  }

  patch(target: Target, type: PatchType, patch: unknown, query: Query = {}): Promise<AnyObject> {
    return this.#json('PATCH', target, { query, body: patch, contentType: PATCH_TYPES[type] })
  }

  /** The deleted object or a Status. */
  delete(target: Target, options: object = {}): Promise<AnyObject> {
    return this.#json('DELETE', target, { body: { kind: 'DeleteOptions', apiVersion: 'v1', ...options } })
  }

  /** Ends without an error if the connection is lost or `--request-timeout` expires, like client-go's watches. */
  async *watch(
    target: Target,
    { query = {}, accept, signal: own }: RequestOptions & { readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<WatchEvent<AnyObject>, void, undefined> {
    const path = pathOf(target.kind, target) + queryText({ ...query, watch: true })
    const signal = own === undefined ? this.#signal : AbortSignal.any([own, this.#signal])
    const response = await this.#client.ask({ method: 'GET', path, accept, signal })
    try {
      for await (const events of readWatchEvents<AnyObject>(response.body)) yield* events
    } catch (error) {
      if (!isEndOfWatch(error)) throw error
    }
  }

  /** Requests any path with its query; returns the body as bytes. */
  async raw(ask: Omit<ApiRequest, 'signal'>): Promise<Buffer> {
    const response = await this.#client.ask({ ...ask, signal: this.#signal })
    return response.bytes(MAX_BYTES).catch((error: unknown) => {
      throw error instanceof HttpError ? bodyError(error) : error
    })
  }

  /** The same as a stream, which may never end. */
  async *pieces(ask: Omit<ApiRequest, 'signal'>): AsyncGenerator<Buffer, void, undefined> {
    const response = await this.#client.ask({ ...ask, signal: this.#signal })
    try {
      yield* response.body
    } catch (error) {
      throw error instanceof HttpError ? bodyError(error) : error
    }
  }

  /** Requests any path that returns JSON. */
  async json<T = JsonObject>(path: string, accept?: string): Promise<T> {
    return readJson(await this.raw({ method: 'GET', path, accept })) as T
  }

  async #json(
    method: string,
    target: Target,
    { query = {}, ...rest }: RequestOptions & Pick<ApiRequest, 'body' | 'contentType'>,
  ): Promise<AnyObject> {
    const { kind, name = '' } = target
    const path = pathOf(kind, target) + queryText(query)
    const about = { resource: { group: kind.group, resource: kind.plural }, name }
    return readJson(await this.raw({ method, path, about, ...rest })) as unknown as AnyObject
  }
}

function isEndOfWatch(error: unknown): boolean {
  return error instanceof HttpError && (error.code === 'timeout' || error.code === 'broken')
}

/** Go's text for a response that ended early. */
function bodyError(cause: HttpError): Error {
  const reason = GO_BODY_ERRORS[cause.code] ?? cause.message
  const text = `unexpected error when reading response body. Please retry. Original error: ${reason}`
  return cause.code === 'timeout' ? new ExitError(1, text) : new KubectlError(text, { cause })
}

const GO_BODY_ERRORS: Readonly<Partial<Record<HttpError['code'], string>>> = {
  broken: 'unexpected EOF',
  timeout: 'net/http: request canceled (Client.Timeout or context cancellation while reading body)',
}

/** Sorted by name like Go's encoder; undefined and empty values are omitted. */
export function queryText(query: Query): string {
  const given = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== '' && value !== false)
    .sort(([one], [other]) => (one < other ? -1 : 1))
  const text = given
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value)).replaceAll('%20', '+')}`)
    .join('&')
  return text === '' ? '' : `?${text}`
}
