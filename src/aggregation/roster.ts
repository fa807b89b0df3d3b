/**
 * The current APIServices: they determine the routing of group versions and the groups in discovery. They come from the
 * watch cache, so a request is never routed by an older state than a GET shows.
 */
import { type APIService, APIServices, type APIServiceSpec } from '#apis/apiregistration/v1.ts'
import type { AnnouncedGroup } from '#apiserver/aggregated.ts'
import type { ServiceReference } from '#apiserver/connect/service-endpoint.ts'
import type { Entry } from '#apiserver/registry/entry.ts'
import { follow, type Following } from '#apiserver/registry/follow.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { compareText } from '#lib/go/text.ts'
import { compareVersions } from '#meta/kind.ts'

/** An APIService whose group version another server serves. */
export interface Remote {
  /** `v1.example.com`. */
  readonly name: string
  readonly group: string
  readonly version: string
  readonly service: ServiceReference
  readonly spec: APIServiceSpec
  readonly isAvailable: boolean
}

export interface Roster {
  get(name: string): APIService | undefined
  all(): Iterable<APIService>
  remote(name: string): Remote | undefined
  remotes(): Iterable<Remote>
  readonly hasRemotes: boolean
  announced(): readonly AnnouncedGroup[]
  close(): void
}

const DEFAULT_PORT = 443

/** `changed` receives the name of every APIService that is added, changed or deleted. */
export function followRoster(registry: Pick<Registry, 'storeOf'>, changed: (name: string) => void): Roster {
  const all = new Map<string, APIService>()
  const remotes = new Map<string, Remote>()
  let announced: readonly AnnouncedGroup[] | undefined
  const note = (name: string, object: APIService | undefined): void => {
    announced = undefined
    const remote = object === undefined ? undefined : remoteOf(name, object)
    if (object === undefined) all.delete(name)
    else all.set(name, object)
    if (remote === undefined) remotes.delete(name)
    else remotes.set(name, remote)
    changed(name)
  }
  const collection = registry.storeOf(APIServices)?.collection
  const following: Following | undefined =
    collection &&
    follow<Entry>(collection, {
      set: ({ name, object }) => note(name, object as APIService),
      remove: ({ name }) => note(name, undefined),
    })
  return {
    get: (name) => all.get(name),
    all: () => all.values(),
    remote: (name) => remotes.get(name),
    remotes: () => remotes.values(),
    get hasRemotes() {
      return remotes.size > 0
    },
    announced: () => (announced ??= planAnnouncement([...all.values()])),
    close: () => following?.close(),
  }
}

function remoteOf(name: string, { spec, status }: APIService): Remote | undefined {
  const { service, group = '', version = '' } = spec
  if (service === undefined) return undefined
  const { namespace = '', name: target = '', port = DEFAULT_PORT } = service
  const available = status?.conditions?.find(({ type }) => type === 'Available')
  return {
    name,
    group,
    version,
    service: { namespace, name: target, port },
    spec,
    isAvailable: available?.status === 'True',
  }
}

/** Groups by the highest priority of their versions, then by name; versions by priority, then by age. */
export function planAnnouncement(services: readonly APIService[]): AnnouncedGroup[] {
  const byGroup = Map.groupBy(services.toSorted(byGroupPriority), ({ spec }) => spec.group ?? '')
  return [...byGroup].map(([name, own]) => ({
    name,
    versions: own
      .toSorted(({ spec: a }, { spec: b }) => compareIn(a, b))
      .map(({ spec }) => ({ group: name, version: spec.version ?? '' })),
  }))
}

/** By the name of the APIService, as upstream, and so by version before group. */
function byGroupPriority({ metadata: one, spec: a }: APIService, { metadata: other, spec: b }: APIService): number {
  return b.groupPriorityMinimum - a.groupPriorityMinimum || compareText(one.name ?? '', other.name ?? '')
}

function compareIn(a: APIServiceSpec, b: APIServiceSpec): number {
  return b.versionPriority - a.versionPriority || compareVersions(b.version ?? '', a.version ?? '')
}
