/**
 * Client of the Kubernetes API: every verb on any kind, typed by the kind. Throws the server's StatusError. Applies the
 * client-side rate limit (`limits`) and honours Retry-After.
 */
import type { Kind } from '#apis/kinds.ts'
import { type BucketOptions, createTokenBucket, type RateLimiter } from '#lib/backoff.ts'
import { CAUSES_HEADER, causesHeader } from '#lib/causes.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { goQuote } from '#lib/go/text.ts'
import type { HttpClient } from '#lib/http/client.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import { parseJson, readJson, stringifyJson } from '#lib/json/json.ts'
import { isJsonObject, type JsonValue } from '#lib/json/value.ts'
import { apiVersionOf, type GroupResource } from '#meta/kind.ts'
import type { KubeList, KubeObject } from '#meta/object.ts'
import {
  type CreateOptions,
  createOptionsQuery,
  type DeleteOptions,
  type GetOptions,
  getOptionsQuery,
  type ListOptions,
  listOptionsQuery,
  type PatchOptions,
  patchOptionsQuery,
} from '#meta/options.ts'
import { encodeQuery } from '#meta/query.ts'
import { genericError } from '#meta/status-errors.ts'
import { type Status, StatusError } from '#meta/status.ts'
import { pathSegmentName } from '#meta/validation/names.ts'
import type { WatchEvent } from '#meta/watch.ts'

import { readSharedEvents, readWatchEvents } from './watch-events.ts'

/** HTTPS, or an API server in this process: see `ApiServer.clientAs`. */
export type Transport = Pick<HttpClient, 'request'>

export interface ApiClientOptions {
  readonly transport: Transport
  /** `https://10.0.0.1:6443`, with a path if the API is served below one. Unused in process. */
  readonly server?: string
  readonly clock: Clock
  /** `kube-scheduler/v1.36.4 (linux/amd64) kubernetes/…`: the server takes the first word as field manager. */
  readonly userAgent: string
  /** Called for each request, for credentials that are not part of the connection. */
  readonly bearerToken?: () => Promise<string | undefined>
  /** Default: no client-side limit; the server applies priority and fairness. */
  readonly limits?: BucketOptions
  /** Limit of a response. Default: 1 GiB. */
  readonly maxBytes?: number
  /** Called with the new state after each update, patch and apply, before the caller's promise resolves. */
  readonly onChanged?: (kind: Kind, object: KubeObject) => void
}

/** The name of one object; `namespace` is absent for cluster-scoped kinds. */
export interface Where {
  readonly namespace?: string | undefined
  readonly name: string
}

/** An object to write; the server fills in missing fields. */
export type Draft<T extends KubeObject> = Partial<Omit<T, 'metadata'>> & Pick<T, 'metadata'>

/** An apply configuration: any subset of fields, with the metadata that names the object. */
export type Wanted<T extends KubeObject> = Parts<Omit<T, 'metadata'>> & Pick<T, 'metadata'>

type Parts<V> = V extends readonly (infer E)[] ? Parts<E>[] : V extends object ? { [K in keyof V]?: Parts<V[K]> } : V

interface RequestOptions {
  readonly signal?: AbortSignal | undefined
}

interface ReadOptions extends RequestOptions {
  /** Requests PartialObjectMetadata: metadata only. */
  readonly metadataOnly?: boolean | undefined
}

export type Selection = Pick<ListOptions, 'labelSelector' | 'fieldSelector'> & { readonly namespace?: string }

export type Patch =
  | { readonly type: 'json'; readonly value: readonly object[] }
  | { readonly type: 'merge' | 'strategic'; readonly value: object }

const PATCH_TYPES = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

export interface ApiRequest {
  readonly method: string
  /** Includes the query. */
  readonly path: string
  /** The resource and name for the error message when the response is not an API Status. */
  readonly about?: { readonly resource: GroupResource; readonly name?: string }
  /** A buffer is sent unchanged, anything else as JSON. */
  readonly body?: unknown
  /** Default `application/json`; empty: no Content-Type header. */
  readonly contentType?: string
  readonly accept?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** Retries after a response with Retry-After, as client-go. */
const MAX_RETRIES = 10
/** For transports that need no address. */
const IN_PROCESS = 'https://kubernetes.default.svc'
/** Larger than any response; lists can be paged. */
const MAX_BYTES = 1 << 30

export class ApiClient {
  readonly #options: ApiClientOptions
  readonly #bucket: RateLimiter<string> | undefined

  constructor(options: ApiClientOptions) {
    this.#options = options
    if (options.limits !== undefined) this.#bucket = createTokenBucket(options.clock, options.limits)
  }

  get clock(): Clock {
    return this.#options.clock
  }

  /**
   * A client that reads the state at a moment: `-2m`, `2026-11-18T03:00Z` or `rv:812`. Its watches deliver the changes
   * after the moment as fast as they happened; with `-2m@60x` sixty times as fast. Only servers of hyperkube have it. The
   * moment replaces that of a client of the past.
   */
  at(moment: string): ApiClient {
    const { server = IN_PROCESS } = this.#options
    return new ApiClient({
      ...this.#options,
      server: `${server.replace(/(?:\/past\/[^/]+)?\/?$/, '')}/past/${encodeURIComponent(moment)}`,
    })
  }

  get<T extends KubeObject>(kind: Kind<T>, where: Where, options: GetOptions & ReadOptions = {}): Promise<T> {
    const { signal, metadataOnly, ...query } = options
    const path = pathOf(kind, where) + text(encodeQuery(getOptionsQuery, query))
    return this.#json({
      method: 'GET',
      path,
      about: about(kind, where.name),
      accept: acceptOf('', metadataOnly),
      signal,
    })
  }

  async list<T extends KubeObject>(
    kind: Kind<T>,
    options: ListOptions & { readonly namespace?: string } & ReadOptions = {},
  ): Promise<KubeList<T>> {
    const { signal, namespace, metadataOnly, ...query } = options
    const path = pathOf(kind, { namespace }) + text(encodeQuery(listOptionsQuery, query))
    const request = { method: 'GET', path, about: about(kind), accept: acceptOf('List', metadataOnly), signal }
    const list = await this.#json<KubeList<T>>(request)
    // Upstream returns null for an empty list of metadata.
    return list.items === null ? { ...list, items: [] } : list
  }

  /** Ends with the connection, the signal or `timeoutSeconds`; `follow` in reflector.ts reconnects. */
  async *watch<T extends KubeObject>(
    kind: Kind<T>,
    options: ListOptions & { readonly namespace?: string } & ReadOptions = {},
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const response = await this.#watch(kind, options)
    for await (const events of readWatchEvents<T>(response.body)) yield* events
  }

  /**
   * Like `watch`, but yields all events of one read as a batch. With `isShared`, objects may be shared with other
   * clients in this process and must not be changed.
   */
  async *watchBatches<T extends KubeObject>(
    kind: Kind<T>,
    options: ListOptions & { readonly namespace?: string; readonly isShared?: boolean | undefined } & ReadOptions = {},
  ): AsyncGenerator<readonly WatchEvent<T>[], void, undefined> {
    const { isShared = false, ...watchOptions } = options
    const { body, shared } = await this.#watch(kind, watchOptions)
    yield* isShared && shared !== undefined ? readSharedEvents<T>(shared) : readWatchEvents<T>(body)
  }

  #watch(kind: Kind, options: ListOptions & { readonly namespace?: string } & ReadOptions): Promise<HttpResponse> {
    const { signal, namespace, metadataOnly, ...query } = options
    const path = pathOf(kind, { namespace }) + text(encodeQuery(listOptionsQuery, { ...query, watch: true }))
    return this.ask({ method: 'GET', path, about: about(kind), accept: acceptOf('', metadataOnly), signal })
  }

  /** Takes namespace and name from the object. `subresource` creates a subresource of it (binding, eviction). */
  create<T extends KubeObject>(
    kind: Kind<T>,
    object: Draft<T>,
    options: CreateOptions & RequestOptions & { readonly subresource?: string } = {},
  ): Promise<T> {
    const { signal, subresource, ...query } = options
    const { namespace, name } = object.metadata
    const where = subresource === undefined ? { namespace } : { namespace, name, subresource }
    const path = pathOf(kind, where) + text(encodeQuery(createOptionsQuery, query))
    return this.#json({ method: 'POST', path, about: about(kind), body: typed(kind, object), signal })
  }

  /** Throws a conflict if `metadata.resourceVersion` is not the stored one. */
  update<T extends KubeObject>(
    kind: Kind<T>,
    object: Draft<T>,
    options: CreateOptions & RequestOptions & { readonly subresource?: string } = {},
  ): Promise<T> {
    const { signal, subresource, ...query } = options
    const { namespace, name = '' } = object.metadata
    const path = pathOf(kind, { namespace, name, subresource }) + text(encodeQuery(createOptionsQuery, query))
    return this.#change(kind, { method: 'PUT', path, about: about(kind, name), body: typed(kind, object), signal })
  }

  updateStatus<T extends KubeObject>(kind: Kind<T>, object: Draft<T>, limits: RequestOptions = {}): Promise<T> {
    return this.update(kind, object, { ...limits, subresource: 'status' })
  }

  patch<T extends KubeObject>(
    kind: Kind<T>,
    where: Where & { readonly subresource?: string },
    { type, value }: Patch,
    options: PatchOptions & RequestOptions = {},
  ): Promise<T> {
    const { signal, ...query } = options
    const path = pathOf(kind, where) + text(encodeQuery(patchOptionsQuery, query))
    const request = { method: 'PATCH', path, about: about(kind, where.name), contentType: PATCH_TYPES[type] }
    return this.#change(kind, { ...request, body: value, signal })
  }

  /** Server-side apply: the object contains exactly the fields that this manager owns. */
  apply<T extends KubeObject>(
    kind: Kind<T>,
    object: Wanted<T>,
    options: PatchOptions & RequestOptions & { readonly fieldManager: string; readonly subresource?: string },
  ): Promise<T> {
    const { signal, subresource, ...query } = options
    const { namespace, name } = object.metadata
    const path = pathOf(kind, { namespace, name, subresource }) + text(encodeQuery(patchOptionsQuery, query))
    const request = { method: 'PATCH', path, about: about(kind, name), contentType: PATCH_TYPES.apply }
    return this.#change(kind, { ...request, body: typed(kind, object), signal })
  }

  async delete(kind: Kind, where: Where, options: DeleteOptions & RequestOptions = {}): Promise<void> {
    const { signal, ...body } = options
    const request = { method: 'DELETE', path: pathOf(kind, where), about: about(kind, where.name) }
    await this.#discard({ ...request, body: deleteOptions(body), signal })
  }

  async deleteCollection(
    kind: Kind,
    selection: Selection,
    options: DeleteOptions & RequestOptions = {},
  ): Promise<void> {
    const { signal, ...body } = options
    const { namespace, ...query } = selection
    const path = pathOf(kind, { namespace }) + text(encodeQuery(listOptionsQuery, query))
    await this.#discard({ method: 'DELETE', path, about: about(kind), body: deleteOptions(body), signal })
  }

  /** Sends any request. Resolves with a 2xx response whose body is unread; throws StatusError otherwise. */
  async ask(request: ApiRequest): Promise<HttpResponse> {
    for (let retries = 0; ; retries++) {
      await this.#waitForRateLimit(request.signal)
      const response = await this.#send(request)
      if (response.status >= 200 && response.status < 300) return response
      const after = Number(response.headers['retry-after'] ?? Number.NaN)
      if (retries >= MAX_RETRIES || Number.isNaN(after) || !(response.status === 429 || response.status >= 500)) {
        throw await failureOf(request, response)
      }
      response.discard()
      await sleep(this.clock, after * 1000, request.signal)
    }
  }

  async #change<T extends KubeObject>(kind: Kind<T>, request: ApiRequest): Promise<T> {
    const object = await this.#json<T>(request)
    // A subresource such as scale returns another kind.
    if (object.kind === kind.kind) this.#options.onChanged?.(kind, object)
    return object
  }

  async #json<R>(request: ApiRequest): Promise<R> {
    const response = await this.ask(request)
    return readJson(await response.bytes(this.#options.maxBytes ?? MAX_BYTES)) as R
  }

  /** Discards the response: a deleted collection may be too large to parse. */
  async #discard(request: ApiRequest): Promise<void> {
    const response = await this.ask(request)
    await response.bytes(this.#options.maxBytes ?? MAX_BYTES)
  }

  async #waitForRateLimit(signal: AbortSignal | undefined): Promise<void> {
    const waitMs = this.#bucket?.when('') ?? 0
    if (waitMs > 0) await sleep(this.clock, waitMs, signal)
  }

  async #send({
    method,
    path,
    body,
    contentType = 'application/json',
    accept,
    signal,
  }: ApiRequest): Promise<HttpResponse> {
    const { transport, server = IN_PROCESS, userAgent, bearerToken } = this.#options
    const because = method === 'GET' ? undefined : causesHeader()
    const token = await bearerToken?.()
    const headers = {
      accept: accept ?? 'application/json',
      'user-agent': userAgent,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && contentType !== '' && { 'content-type': contentType }),
      ...(because !== undefined && { [CAUSES_HEADER]: because }),
    }
    const content = body === undefined ? {} : { body: Buffer.isBuffer(body) ? body : stringifyJson(body) }
    const url = server.replace(/\/$/, '') + path
    return transport.request({ method, url, headers, ...content, ...(signal !== undefined && { signal }) })
  }
}

function acceptOf(suffix: 'List' | '', metadataOnly = false): string | undefined {
  if (!metadataOnly) return undefined
  return `application/json;as=PartialObjectMetadata${suffix};g=meta.k8s.io;v=v1,application/json`
}

function about({ group, plural }: Kind, name = ''): NonNullable<ApiRequest['about']> {
  return { resource: { group, resource: plural }, name }
}

function typed(kind: Kind, object: object): object {
  return { kind: kind.kind, apiVersion: apiVersionOf(kind), ...object }
}

function deleteOptions(options: DeleteOptions): object {
  return { kind: 'DeleteOptions', apiVersion: 'v1', ...options }
}

interface ResourcePath {
  readonly namespace?: string | undefined
  readonly name?: string | undefined
  readonly subresource?: string | undefined
}

/**
 * The URL path of a collection, object or subresource. Throws on a name that leads to another resource: the URL parser
 * resolves `..`.
 */
export function pathOf(kind: Kind, { namespace = '', name = '', subresource = '' }: ResourcePath): string {
  requireSegment('resource name', name)
  requireSegment('namespace', namespace)
  requireSegment('subresource', subresource)
  const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`
  const scope = kind.namespaced && namespace !== '' ? `/namespaces/${encodeURIComponent(namespace)}` : ''
  const rest = [name, subresource].filter((part) => part !== '').map((part) => `/${encodeURIComponent(part)}`)
  return `${root}${scope}/${kind.plural}${rest.join('')}`
}

function requireSegment(what: string, value: string): void {
  const problems = pathSegmentName(value)
  if (problems.length > 0) throw new Error(`invalid ${what} ${goQuote(value)}: [${problems.join(' ')}]`)
}

function text(query: URLSearchParams): string {
  return query.size === 0 ? '' : `?${query.toString()}`
}

const MAX_ERROR_BYTES = 1 << 20

async function failureOf({ method, about }: ApiRequest, response: HttpResponse): Promise<StatusError> {
  const body = await response.text(MAX_ERROR_BYTES).catch(() => '')
  const status = statusIn(body)
  if (status !== undefined) return new StatusError(status)
  const serverMessage = body.slice(0, 2048).trim()
  return genericError({ code: response.status, method, serverMessage, unexpected: true, ...about })
}

function statusIn(body: string): Status | undefined {
  if (!body.startsWith('{')) return undefined
  try {
    const value: JsonValue = parseJson(body)
    return isJsonObject(value) && value['kind'] === 'Status' ? (value as unknown as Status) : undefined
  } catch {
    return undefined
  }
}
