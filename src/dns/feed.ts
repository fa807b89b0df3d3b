/** Keeps the directory in step with what the API server has: objects pass through, and what names need of them stays. */
import { type Namespace, Namespaces, type Service, Services } from '#apis/core/v1.ts'
import { type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient } from '#client/api-client.ts'
import { follow } from '#client/follow.ts'
import type { Logger } from '#lib/log.ts'
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
  /** Whether everything has been seen once. */
  readonly isSynced: () => boolean
  readonly synced: Promise<void>
}

interface Shelf<T extends KubeObject> {
  readonly kind: Kind<T>
  readonly held: 'namespaces' | 'services' | 'slices'
  set(object: T): void
  remove(name: string, namespace: string): void
  /** What is read of an object, so that a long list does not stay in memory as it came. */
  slim(object: T): T
}

export function startFeed({ directory, ...options }: FeedOptions): Feed {
  let missing = 0
  const { promise: synced, resolve } = Promise.withResolvers<void>()
  const run = <T extends KubeObject>(shelf: Shelf<T>): void => {
    let isFirst = true
    missing++
    void follow(
      { ...options, kind: shelf.kind },
      {
        arrived: (object) => shelf.slim(object),
        replace(objects) {
          replace(directory, shelf, objects)
          if (isFirst && --missing === 0) resolve()
          isFirst = false
        },
        change({ type, object }) {
          const { name = '', namespace = '' } = object.metadata
          if (type === 'DELETED') shelf.remove(name, namespace)
          else shelf.set(object)
        },
        failed: (error) => options.log.error(error, 'Names cannot be kept up to date', { kind: shelf.kind.kind }),
      },
    )
  }
  run<Namespace>({
    kind: Namespaces,
    held: 'namespaces',
    set: (namespace) => directory.setNamespace(namespace),
    remove: (name) => directory.removeNamespace(name),
    slim: ({ metadata: { name, resourceVersion }, ...rest }) => ({
      ...rest,
      metadata: metadataOf(name, resourceVersion),
    }),
  })
  run<Service>({
    kind: Services,
    held: 'services',
    set: (service) => directory.setService(service),
    remove: (name, namespace) => directory.removeService(name, namespace),
    slim: withoutOwners,
  })
  run<EndpointSlice>({
    kind: EndpointSlices,
    held: 'slices',
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

/** Those that have gone while nobody listened go too. */
function replace<T extends KubeObject>(directory: Directory, shelf: Shelf<T>, objects: readonly T[]): void {
  const there = new Set(objects.map(({ metadata: { name = '', namespace = '' } }) => `${namespace}/${name}`))
  for (const [name, namespace] of directory.held(shelf.held))
    if (!there.has(`${namespace}/${name}`)) shelf.remove(name, namespace)
  for (const object of objects) shelf.set(object)
}
