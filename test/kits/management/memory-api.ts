/**
 * An in-memory API server for tests with a virtual clock: it stores any kind and supports all verbs, without schemas
 * or validation.
 */
import type { Transport } from '#client/api-client.ts'
import type { Clock } from '#lib/clock.ts'
import type { HttpRequest } from '#lib/http/client.ts'
import { wholeResponse } from '#lib/http/response.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import type { KubeObject } from '#meta/object.ts'
import { alreadyExistsError, modifiedError, notFoundError } from '#meta/status-errors.ts'
import { StatusError } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'

export interface MemoryApi {
  readonly transport: Transport
  /** `<method> <path>` of every request, except watches. */
  readonly requests: string[]
}

interface Target {
  /** The path of the collection. */
  readonly collection: string
  readonly plural: string
  readonly name: string | undefined
  readonly subresource: string | undefined
}

type Watcher = (event: { readonly type: string; readonly object: KubeObject }) => void

const TARGET = /^(\/(?:api\/v1|apis\/[^/]+\/[^/]+)(?:\/namespaces\/[^/]+)?\/([^/]+))(?:\/([^/]+)(?:\/([^/]+))?)?$/

export function createMemoryApi(clock: Clock): MemoryApi {
  const store = new MemoryStore(clock)
  const requests: string[] = []
  return {
    requests,
    transport: {
      async request({ method = 'GET', url, body, signal }) {
        const { pathname, searchParams } = new URL(url)
        const target = targetOf(pathname)
        if (searchParams.get('watch') === 'true') return store.watch(target, signal)
        requests.push(`${method} ${pathname}`)
        const sent = body === undefined ? undefined : (JSON.parse(textOf(body)) as KubeObject)
        return answer(() => store.serve(method, target, sent))
      },
    },
  }
}

function textOf(body: NonNullable<HttpRequest['body']>): string {
  if (typeof body === 'string' || Buffer.isBuffer(body)) return body.toString()
  throw new Error('Cannot serve a streamed body')
}

function targetOf(path: string): Target {
  const [, collection, plural, name, subresource] = TARGET.exec(path) ?? []
  if (collection === undefined || plural === undefined) throw new Error(`Cannot serve "${path}"`)
  return { collection, plural, name, subresource }
}

function answer(serve: () => object): HttpResponse {
  try {
    return respond(200, serve())
  } catch (error) {
    if (error instanceof StatusError) return respond(error.status.code ?? 500, error.status)
    throw error
  }
}

function respond(status: number, body: object): HttpResponse {
  return wholeResponse(Buffer.from(JSON.stringify(body)), { status, headers: {}, version: '1.1' })
}

class MemoryStore {
  readonly #clock: Clock
  readonly #collections = new Map<string, Map<string, KubeObject>>()
  readonly #watchers = new Map<string, Set<Watcher>>()
  #version = 1

  constructor(clock: Clock) {
    this.#clock = clock
  }

  serve(method: string, target: Target, sent: KubeObject | undefined): object {
    const objects = this.#objectsOf(target.collection)
    if (method === 'POST' && sent !== undefined) return this.#create(target, sent)
    if (target.name === undefined)
      return { metadata: { resourceVersion: `${this.#version}` }, items: [...objects.values()] }
    const current = objects.get(target.name)
    if (current === undefined) throw notFoundError(resourceOf(target), target.name)
    if (method === 'PUT' && sent !== undefined) return this.#update(target, current, sent)
    if (method === 'PATCH' && sent !== undefined)
      return this.#update(target, current, merged(current, sent) as KubeObject)
    if (method === 'DELETE') this.#delete(target, current)
    return current
  }

  #create(target: Target, sent: KubeObject): KubeObject {
    const { name = '' } = sent.metadata
    const objects = this.#objectsOf(target.collection)
    if (objects.has(name)) throw alreadyExistsError(resourceOf(target), name)
    const version = `${++this.#version}`
    const times = { uid: `uid-${version}`, creationTimestamp: timeOf(this.#clock.now()) }
    return this.#store(target, 'ADDED', { ...sent, metadata: { ...sent.metadata, ...times, resourceVersion: version } })
  }

  #update(target: Target, current: KubeObject, sent: KubeObject): KubeObject {
    const { resourceVersion } = sent.metadata
    const { name = '' } = current.metadata
    if (resourceVersion !== undefined && resourceVersion !== current.metadata.resourceVersion) {
      throw modifiedError(resourceOf(target), name)
    }
    const [status, rest] = target.subresource === 'status' ? [sent, current] : [current, sent]
    const made = { ...rest, ...('status' in status && { status: status.status }) }
    const metadata = { ...current.metadata, resourceVersion: `${++this.#version}` }
    return this.#store(target, 'MODIFIED', { ...made, metadata })
  }

  #delete({ collection, name = '' }: Target, current: KubeObject): void {
    this.#objectsOf(collection).delete(name)
    const metadata = { ...current.metadata, resourceVersion: `${++this.#version}` }
    this.#emit(collection, 'DELETED', { ...current, metadata })
  }

  #store({ collection }: Target, type: string, object: KubeObject): KubeObject {
    this.#objectsOf(collection).set(object.metadata.name ?? '', object)
    this.#emit(collection, type, object)
    return object
  }

  #emit(collection: string, type: string, object: KubeObject): void {
    for (const watcher of this.#watchers.get(collection) ?? []) watcher({ type, object })
  }

  watch({ collection }: Target, signal: AbortSignal | undefined): HttpResponse {
    const watchers = this.#watchers.get(collection) ?? new Set()
    this.#watchers.set(collection, watchers)
    const pieces = new Pieces(signal)
    for (const object of this.#objectsOf(collection).values()) pieces.add({ type: 'ADDED', object })
    const annotations = { 'k8s.io/initial-events-end': 'true' }
    pieces.add({ type: 'BOOKMARK', object: { metadata: { resourceVersion: `${this.#version}`, annotations } } })
    watchers.add((event) => pieces.add(event))
    return { ...respond(200, {}), body: pieces.read() }
  }

  #objectsOf(collection: string): Map<string, KubeObject> {
    const objects = this.#collections.get(collection) ?? new Map<string, KubeObject>()
    this.#collections.set(collection, objects)
    return objects
  }
}

/** RFC 7386. */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const result = { ...(target as Record<string, unknown> | undefined) }
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else result[key] = merged(result[key], value)
  }
  return result
}

function resourceOf({ plural }: Target): { readonly group: string; readonly resource: string } {
  return { group: '', resource: plural }
}

/** The body of a watch. */
class Pieces {
  readonly #signal: AbortSignal | undefined
  readonly #queue: Buffer[] = []
  #wake: () => void = () => undefined

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal
    signal?.addEventListener('abort', () => this.#wake())
  }

  add(event: object): void {
    this.#queue.push(Buffer.from(`${JSON.stringify(event)}\n`))
    this.#wake()
  }

  async *read(): AsyncGenerator<Buffer> {
    while (this.#signal?.aborted !== true) {
      const next = this.#queue.shift()
      if (next !== undefined) yield next
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }
}
