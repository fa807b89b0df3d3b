/**
 * Discovery of aggregated servers, for the aggregated document. It is fetched when an APIService changes and every
 * minute; an unreachable server keeps its group versions, marked as stale. Follows upstream's
 * kube-aggregator/pkg/apiserver/handler_discovery.go, v1.36.
 */
import type { APIGroupDiscoveryList, APIResourceDiscovery, APIVersionDiscovery } from '#apis/apidiscovery/v2.ts'
import type { APIResource, APIResourceList } from '#apis/meta/v1.ts'
import type { AggregatedVersion } from '#apiserver/aggregated.ts'
import { BUILT_IN } from '#apiserver/registry/shapes.ts'
import { createItemBackoff } from '#lib/backoff.ts'
import type { Clock } from '#lib/clock.ts'
import { WorkQueue } from '#lib/work-queue.ts'
import { decodeObject } from '#meta/codec/object.ts'
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'

import { rootOf } from './availability.ts'
import type { FrontProxy, Reply } from './front-proxy.ts'
import type { Remote, Roster } from './roster.ts'

export interface RemoteDiscoveryOptions {
  readonly clock: Clock
  readonly roster: Pick<Roster, 'remote' | 'remotes'>
  readonly frontProxy: FrontProxy
  readonly onError: (error: unknown, name: string) => void
}

export interface RemoteDiscovery {
  /** Schedules a fetch for an APIService; drops a deleted one. */
  readonly look: (name: string) => void
  versions(): readonly AggregatedVersion[]
  close(): Promise<void>
}

const WORKERS = 2
const REFRESH_MS = 60_000
const BACKOFF = { baseMs: 500, capMs: REFRESH_MS }

export function startRemoteDiscovery(options: RemoteDiscoveryOptions): RemoteDiscovery {
  const { clock, roster } = options
  const known = new Map<string, AggregatedVersion>()
  /** Returns the same objects until one of them changes. */
  let all: readonly AggregatedVersion[] = []
  const note = (name: string, version: AggregatedVersion | undefined): void => {
    if (version === undefined ? !known.delete(name) : isSame(known.get(name), version)) return
    if (version !== undefined) known.set(name, version)
    all = [...known.values()]
  }
  const queue = new WorkQueue<string>({ clock, rateLimiter: createItemBackoff(BACKOFF) })
  const ended = new AbortController()
  const fetcher = new Fetcher(options)
  const running = queue.run({
    workers: WORKERS,
    signal: ended.signal,
    async handle(name) {
      const remote = roster.remote(name)
      if (remote === undefined) return note(name, undefined)
      try {
        note(name, versionOf(remote, await fetcher.fetch(remote), 'Current'))
      } catch (error) {
        note(name, versionOf(remote, undefined, 'Stale'))
        throw error
      }
      return { requeueAfterMs: REFRESH_MS }
    },
    onError: (error, name) => (ended.signal.aborted ? undefined : options.onError(error, name)),
  })
  return {
    look(name) {
      const remote = roster.remote(name)
      if (remote === undefined) return note(name, undefined)
      if (!known.has(name)) note(name, versionOf(remote, undefined, 'Stale'))
      queue.add(name)
    },
    versions: () => all,
    close() {
      ended.abort()
      return running
    },
  }
}

function isSame(one: AggregatedVersion | undefined, other: AggregatedVersion): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

function versionOf(
  { group, version, spec }: Remote,
  found: APIVersionDiscovery | undefined,
  freshness: 'Current' | 'Stale',
): AggregatedVersion {
  const { groupPriorityMinimum: groupPriority, versionPriority } = spec
  const { resources } = found ?? {}
  const discovery = { version, ...(resources !== undefined && { resources }), freshness }
  return { group, groupPriority, versionPriority, discovery }
}

/** The group versions of one server, which several APIServices may use. */
interface ServerDiscovery {
  readonly versions: ReadonlyMap<string, APIVersionDiscovery>
  readonly etag: string | undefined
}

const ACCEPT = ['v2', 'v2beta1']
  .map((version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`)
  .join(',')
const AGGREGATED = /;\s*as=APIGroupDiscoveryList/
const TIMEOUT_MS = 5000
/** Several times the size of the API server's own discovery. */
const LIMIT_BYTES = 4 << 20
const USER = 'system:kube-aggregator'

class Fetcher {
  readonly #options: RemoteDiscoveryOptions
  /** By Service. */
  readonly #discoveries = new Map<string, ServerDiscovery>()

  constructor(options: RemoteDiscoveryOptions) {
    this.#options = options
  }

  /**
   * Undefined if the server does not list the group version. Rejects if it is unreachable or the response is malformed.
   */
  async fetch(remote: Remote): Promise<APIVersionDiscovery | undefined> {
    const key = serviceKey(remote)
    const known = this.#discoveries.get(key)
    this.#forgetUnused()
    const { frontProxy } = this.#options
    const url = frontProxy.locate(remote)
    const limits = { timeoutMs: TIMEOUT_MS, limitBytes: LIMIT_BYTES }
    const { etag } = known ?? {}
    const request = { path: '/apis', accept: ACCEPT, user: USER, groups: ['system:masters'], ...limits }
    const reply = await frontProxy.ask(remote, url, { ...request, ...(etag !== undefined && { etag }) })
    if (reply.status === 304 && known !== undefined) return known.versions.get(apiVersionOf(remote))
    if (reply.status === 503) throw new Error(`service ${key} returned non-success response code: 503`)
    if (reply.status !== 200 || !AGGREGATED.test(reply.headers['content-type'] ?? '')) {
      const path = rootOf(remote)
      const legacy = await frontProxy.ask(remote, url, { path, accept: 'application/json', user: USER, ...limits })
      return readLegacy(remote, legacy)
    }
    const versions = readAggregated(reply)
    this.#discoveries.set(key, { versions, etag: reply.headers.etag })
    return versions.get(apiVersionOf(remote))
  }

  #forgetUnused(): void {
    const used = new Set([...this.#options.roster.remotes()].map(serviceKey))
    for (const key of this.#discoveries.keys()) if (!used.has(key)) this.#discoveries.delete(key)
  }
}

function serviceKey({ service: { namespace, name, port } }: Remote): string {
  return `${namespace}/${name}:${port}`
}

/** By group version. Throws for a malformed list. */
export function readAggregated({ body }: Pick<Reply, 'body'>): Map<string, APIVersionDiscovery> {
  const { object, gvk } = decodeObject(body, 'application/json', { schemaFor: BUILT_IN.schemaFor })
  if (gvk.kind !== 'APIGroupDiscoveryList') throw new Error(`discovery is no APIGroupDiscoveryList but a ${gvk.kind}`)
  const { items } = object as unknown as APIGroupDiscoveryList
  return new Map(
    (items ?? []).flatMap(({ metadata, versions = [] }) =>
      versions.map((one) => [apiVersionOf({ group: metadata.name ?? '', version: one.version }), completed(one)]),
    ),
  )
}

/** Some client releases fail if a kind is missing. */
function completed(version: APIVersionDiscovery): APIVersionDiscovery {
  const nothing = { group: '', version: '', kind: '' }
  const resources = version.resources?.map(({ subresources, ...resource }) => ({
    ...resource,
    responseKind: resource.responseKind ?? nothing,
    ...(subresources !== undefined && {
      subresources: subresources.map((part) => ({ ...part, responseKind: part.responseKind ?? nothing })),
    }),
  }))
  return { ...version, ...(resources !== undefined && { resources }) }
}

/** From the document of one group version, for servers without aggregated discovery. */
export function readLegacy(remote: Remote, { status, body }: Pick<Reply, 'status' | 'body'>): APIVersionDiscovery {
  const path = rootOf(remote)
  if (status !== 200) throw new Error(`failed to download legacy discovery for ${path}: ${status}`)
  const defaultKind = { group: '', version: 'v1', kind: 'APIResourceList' }
  const { object } = decodeObject(body, 'application/json', { schemaFor: BUILT_IN.schemaFor, defaultKind })
  const { resources } = object as unknown as APIResourceList
  const byName = Map.groupBy(resources ?? [], ({ name }) => name.split('/', 1)[0] ?? '')
  return { version: remote.version, resources: [...byName].map(([name, rows]) => resourceOf(name, rows)) }
}

/** A resource and its subresources; a resource may have only subresources. */
function resourceOf(resource: string, rows: readonly APIResource[]): APIResourceDiscovery {
  const whole = rows.find(({ name }) => name === resource)
  const parts = rows.filter((row) => row !== whole)
  const { shortNames, categories } = whole ?? {}
  return {
    resource,
    responseKind: kindOf(whole),
    scope: rows[0]?.namespaced === true ? 'Namespaced' : 'Cluster',
    singularResource: whole?.singularName ?? '',
    verbs: whole?.verbs ?? null,
    ...(shortNames !== undefined && { shortNames }),
    ...(categories !== undefined && { categories }),
    ...(parts.length > 0 && {
      subresources: parts.map((part) => ({
        subresource: part.name.slice(resource.length + 1),
        responseKind: kindOf(part),
        verbs: part.verbs,
      })),
    }),
  }
}

function kindOf({ group = '', version = '', kind = '' }: Partial<APIResource> = {}): GroupVersionKind {
  return { group, version, kind }
}
