/** Watches Services, endpoints and pods and updates the DNS directory. The objects themselves are not kept. */
import { type Namespace, Namespaces, type Service, Services } from '#apis/core/v1.ts'
import { type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient } from '#client/api-client.ts'
import { follow } from '#client/reflector.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'
import type { KubeObject } from '#meta/object.ts'

import type { Directory } from './directory.ts'

export interface FeedOptions {
  readonly client: ApiClient
  readonly random: Random
  readonly log: Logger
  readonly directory: Directory
  readonly signal: AbortSignal
}

export interface Feed {
  /** Whether all kinds are synced. */
  readonly isSynced: () => boolean
  readonly synced: Promise<void>
}

interface WatchedKind<T extends KubeObject> {
  readonly kind: Kind<T>
  readonly stored: 'namespaces' | 'services' | 'slices'
  set(object: T): void
  remove(name: string, namespace: string): void
  /** Reduces an object while a list arrives, to limit memory. */
  slim(object: T): T
}

export function startFeed({ directory, ...options }: FeedOptions): Feed {
  let missing = 0
  const { promise: synced, resolve } = Promise.withResolvers<void>()
  const run = <T extends KubeObject>(watched: WatchedKind<T>): void => {
    let isFirst = true
    missing++
    void follow(
      { ...options, kind: watched.kind },
      {
        arrived: (object) => watched.slim(object),
        replace(objects) {
          replace(directory, watched, objects)
          if (isFirst && --missing === 0) resolve()
          isFirst = false
        },
        change({ type, object }) {
          const { name = '', namespace = '' } = object.metadata
          if (type === 'DELETED') watched.remove(name, namespace)
          else watched.set(object)
        },
        failed: (error) => options.log.error(error, 'Failed to watch objects for DNS', { kind: watched.kind.kind }),
      },
    )
  }
  run<Namespace>({
    kind: Namespaces,
    stored: 'namespaces',
    set: (namespace) => directory.setNamespace(namespace),
    remove: (name) => directory.removeNamespace(name),
    slim: ({ metadata: { name, resourceVersion }, ...rest }) => ({
      ...rest,
      metadata: metadataOf(name, resourceVersion),
    }),
  })
  run<Service>({
    kind: Services,
    stored: 'services',
    set: (service) => directory.setService(service),
    remove: (name, namespace) => directory.removeService(name, namespace),
    slim: withoutOwners,
  })
  run<EndpointSlice>({
    kind: EndpointSlices,
    stored: 'slices',
    set: (slice) => directory.setSlice(slice),
    remove: (name, namespace) => directory.removeSlice(name, namespace),
    slim: withoutOwners,
  })
  return { isSynced: () => missing === 0, synced }
}

const metadataOf = (name?: string, resourceVersion?: string): KubeObject['metadata'] => ({
  ...(name !== undefined && { name }),
  ...(resourceVersion !== undefined && { resourceVersion }),
})

function withoutOwners<T extends KubeObject>(object: T): T {
  const { managedFields: _, annotations: __, ...metadata } = object.metadata
  return { ...object, metadata }
}

/** Also deletes objects that disappeared between watches. */
function replace<T extends KubeObject>(directory: Directory, watched: WatchedKind<T>, objects: readonly T[]): void {
  const there = new Set(objects.map(({ metadata: { name = '', namespace = '' } }) => `${namespace}/${name}`))
  for (const [name, namespace] of directory.stored(watched.stored))
    if (!there.has(`${namespace}/${name}`)) watched.remove(name, namespace)
  for (const object of objects) watched.set(object)
}
