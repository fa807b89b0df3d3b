/**
 * The API as a client sees it: every verb on any kind, typed where the kind is. What the server refuses is thrown as the
 * StatusError it sent. Requests wait for their turn (`limits`), and are sent again where the server says when.
 */
import type { Kind } from '#apis/kinds.ts'
import { type BucketOptions, createTokenBucket, type RateLimiter } from '#lib/backoff.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { goQuote } from '#lib/go-text.ts'
import type { HttpClient } from '#lib/http/client.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import { isJsonObject, type JsonValue } from '#lib/json-value.ts'
import { parseJson, readJson, stringifyJson } from '#lib/json.ts'
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

/** HTTPS, or the server in the same process: see `ApiServer.clientAs`. */
export type Transport = Pick<HttpClient, 'request'>

export interface ApiClientOptions {
  readonly transport: Transport
  /** `https://10.0.0.1:6443`, with a path when the API is below one. Nobody looks at it in process. */
  readonly server?: string
  readonly clock: Clock
  /** `kube-scheduler/v1.36.4 (linux/amd64) kubernetes/…`: the first word names the owner of fields that are set. */
  readonly userAgent: string
  /** Asked for each request; for credentials that are not part of the connection. */
  readonly bearerToken?: () => Promise<string | undefined>
  /** Default: none, fairness is the server's. */
  readonly limits?: BucketOptions
  /** Told what an object is like after each change of it, before whoever changed it is. */
  readonly onChanged?: (kind: Kind, object: KubeObject) => void
}

/** One object; `namespace` is left out for kinds that have none. */
export interface Where {
  readonly namespace?: string | undefined
  readonly name: string
}

/** An object as a client writes it: the server fills in what is left out. */
export type Draft<T extends KubeObject> = Partial<Omit<T, 'metadata'>> & Pick<T, 'metadata'>

/** What a manager wants of an object: any part of it, and which object it is. */
export type Wanted<T extends KubeObject> = Parts<Omit<T, 'metadata'>> & Pick<T, 'metadata'>

type Parts<V> = V extends readonly (infer E)[] ? Parts<E>[] : V extends object ? { [K in keyof V]?: Parts<V[K]> } : V

interface Limits {
  readonly signal?: AbortSignal | undefined
}

interface Reading extends Limits {
  /** Objects with their metadata and nothing else (PartialObjectMetadata). */
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

export interface Ask {
  readonly method: string
  /** With its query. */
  readonly path: string
  /** What it is about, for the message when the answer is in no form of the API. */
  readonly about?: { readonly resource: GroupResource; readonly name?: string }
  /** Sent as JSON; a buffer as it is. */
  readonly body?: unknown
  /** Default `application/json`; empty: the request does not name one. */
  readonly contentType?: string
  readonly accept?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** How often a server that says "later" is asked again, as upstream's client does. */
const MAX_RETRIES = 10
/** More than any answer has; a list can be read in pages. */
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

  get<T extends KubeObject>(kind: Kind<T>, where: Where, options: GetOptions & Reading = {}): Promise<T> {
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
    options: ListOptions & { readonly namespace?: string } & Reading = {},
  ): Promise<KubeList<T>> {
    const { signal, namespace, metadataOnly, ...query } = options
    const path = pathOf(kind, { namespace }) + text(encodeQuery(listOptionsQuery, query))
    const ask = { method: 'GET', path, about: about(kind), accept: acceptOf('List', metadataOnly), signal }
    const list = await this.#json<KubeList<T>>(ask)
    // An empty list of metadata says null.
    return list.items === null ? { ...list, items: [] } : list
  }

  /** Ends with the connection, with the signal or after `timeoutSeconds`; see `follow` for one that goes on. */
  async *watch<T extends KubeObject>(
    kind: Kind<T>,
    options: ListOptions & { readonly namespace?: string } & Reading = {},
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const response = await this.#watch(kind, options)
    for await (const events of readWatchEvents<T>(response.body)) yield* events
  }

  /**
   * The same, with what came together told together. `isShared`: objects may be those that others in this process got, and
   * nobody may change anything in them.
   */
  async *watchTogether<T extends KubeObject>(
    kind: Kind<T>,
    options: ListOptions & { readonly namespace?: string; readonly isShared?: boolean | undefined } & Reading = {},
  ): AsyncGenerator<readonly WatchEvent<T>[], void, undefined> {
    const { isShared = false, ...asked } = options
    const { body, shared } = await this.#watch(kind, asked)
    yield* isShared && shared !== undefined ? readSharedEvents<T>(shared) : readWatchEvents<T>(body)
  }

  #watch(kind: Kind, options: ListOptions & { readonly namespace?: string } & Reading): Promise<HttpResponse> {
    const { signal, namespace, metadataOnly, ...query } = options
    const path = pathOf(kind, { namespace }) + text(encodeQuery(listOptionsQuery, { ...query, watch: true }))
    return this.ask({ method: 'GET', path, about: about(kind), accept: acceptOf('', metadataOnly), signal })
  }

  /** The object's own namespace and name count; `subresource` for what is made below an object (binding, eviction). */
  create<T extends KubeObject>(
    kind: Kind<T>,
    object: Draft<T>,
    options: CreateOptions & Limits & { readonly subresource?: string } = {},
  ): Promise<T> {
    const { signal, subresource, ...query } = options
    const { namespace, name } = object.metadata
    const where = subresource === undefined ? { namespace } : { namespace, name, subresource }
    const path = pathOf(kind, where) + text(encodeQuery(createOptionsQuery, query))
    return this.#json({ method: 'POST', path, about: about(kind), body: typed(kind, object), signal })
  }

  /** Refused with a conflict when somebody changed it since: `metadata.resourceVersion` says what is replaced. */
  update<T extends KubeObject>(
    kind: Kind<T>,
    object: Draft<T>,
    options: CreateOptions & Limits & { readonly subresource?: string } = {},
  ): Promise<T> {
    const { signal, subresource, ...query } = options
    const { namespace, name = '' } = object.metadata
    const path = pathOf(kind, { namespace, name, subresource }) + text(encodeQuery(createOptionsQuery, query))
    return this.#change(kind, { method: 'PUT', path, about: about(kind, name), body: typed(kind, object), signal })
  }

  updateStatus<T extends KubeObject>(kind: Kind<T>, object: Draft<T>, limits: Limits = {}): Promise<T> {
    return this.update(kind, object, { ...limits, subresource: 'status' })
  }

  patch<T extends KubeObject>(
    kind: Kind<T>,
    where: Where & { readonly subresource?: string },
    { type, value }: Patch,
    options: PatchOptions & Limits = {},
  ): Promise<T> {
    const { signal, ...query } = options
    const path = pathOf(kind, where) + text(encodeQuery(patchOptionsQuery, query))
    const ask = { method: 'PATCH', path, about: about(kind, where.name), contentType: PATCH_TYPES[type] }
    return this.#change(kind, { ...ask, body: value, signal })
  }

  /** Server-side apply: the object says what this manager wants, and nothing else. */
  apply<T extends KubeObject>(
    kind: Kind<T>,
    object: Wanted<T>,
    options: PatchOptions & Limits & { readonly fieldManager: string; readonly subresource?: string },
  ): Promise<T> {
    const { signal, subresource, ...query } = options
    const { namespace, name } = object.metadata
    const path = pathOf(kind, { namespace, name, subresource }) + text(encodeQuery(patchOptionsQuery, query))
    const ask = { method: 'PATCH', path, about: about(kind, name), contentType: PATCH_TYPES.apply }
    return this.#change(kind, { ...ask, body: typed(kind, object), signal })
  }

  async delete(kind: Kind, where: Where, options: DeleteOptions & Limits = {}): Promise<void> {
    const { signal, ...body } = options
    const ask = { method: 'DELETE', path: pathOf(kind, where), about: about(kind, where.name) }
    await this.#done({ ...ask, body: deleteOptions(body), signal })
  }

  async deleteCollection(kind: Kind, selection: Selection, options: DeleteOptions & Limits = {}): Promise<void> {
    const { signal, ...body } = options
    const { namespace, ...query } = selection
    const path = pathOf(kind, { namespace }) + text(encodeQuery(listOptionsQuery, query))
    await this.#done({ method: 'DELETE', path, about: about(kind), body: deleteOptions(body), signal })
  }

  /** Anything else. Resolves with an answer of success, whose body is still to be read; throws StatusError else. */
  async ask(ask: Ask): Promise<HttpResponse> {
    for (let retries = 0; ; retries++) {
      await this.#turn(ask.signal)
      const response = await this.#send(ask)
      if (response.status >= 200 && response.status < 300) return response
      const after = Number(response.headers['retry-after'] ?? Number.NaN)
      if (retries >= MAX_RETRIES || Number.isNaN(after) || !(response.status === 429 || response.status >= 500)) {
        throw await failureOf(ask, response)
      }
      response.discard()
      await sleep(this.clock, after * 1000, ask.signal)
    }
  }

  async #change<T extends KubeObject>(kind: Kind<T>, ask: Ask): Promise<T> {
    const object = await this.#json<T>(ask)
    // A scale, say, is answered with something else.
    if (object.kind === kind.kind) this.#options.onChanged?.(kind, object)
    return object
  }

  async #json<R>(ask: Ask): Promise<R> {
    const response = await this.ask(ask)
    return readJson(await response.bytes(MAX_BYTES)) as R
  }

  /** For answers that nobody reads: everything that was deleted may be more than can be read at once. */
  async #done(ask: Ask): Promise<void> {
    const response = await this.ask(ask)
    await response.bytes(MAX_BYTES)
  }

  async #turn(signal: AbortSignal | undefined): Promise<void> {
    const waitMs = this.#bucket?.when('') ?? 0
    if (waitMs > 0) await sleep(this.clock, waitMs, signal)
  }

  async #send({ method, path, body, contentType = 'application/json', accept, signal }: Ask): Promise<HttpResponse> {
    const { transport, server = 'https://kubernetes.default.svc', userAgent, bearerToken } = this.#options
    const token = await bearerToken?.()
    const headers = {
      accept: accept ?? 'application/json',
      'user-agent': userAgent,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && contentType !== '' && { 'content-type': contentType }),
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

function about({ group, plural }: Kind, name = ''): NonNullable<Ask['about']> {
  return { resource: { group, resource: plural }, name }
}

function typed(kind: Kind, object: object): object {
  return { kind: kind.kind, apiVersion: apiVersionOf(kind), ...object }
}

function deleteOptions(options: DeleteOptions): object {
  return { kind: 'DeleteOptions', apiVersion: 'v1', ...options }
}

interface Place {
  readonly namespace?: string | undefined
  readonly name?: string | undefined
  readonly subresource?: string | undefined
}

/**
 * Where a collection, an object or a part of one is served. Throws for a name that would lead to another object or to a
 * collection: the URL parser resolves `..`.
 */
export function pathOf(kind: Kind, { namespace = '', name = '', subresource = '' }: Place): string {
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

async function failureOf({ method, about }: Ask, response: HttpResponse): Promise<StatusError> {
  const said = await response.text(MAX_ERROR_BYTES).catch(() => '')
  const status = statusIn(said)
  if (status !== undefined) return new StatusError(status)
  const serverMessage = said.slice(0, 2048).trim()
  return genericError({ code: response.status, method, serverMessage, unexpected: true, ...about })
}

function statusIn(said: string): Status | undefined {
  if (!said.startsWith('{')) return undefined
  try {
    const value: JsonValue = parseJson(said)
    return isJsonObject(value) && value['kind'] === 'Status' ? (value as unknown as Status) : undefined
  } catch {
    return undefined
  }
}
