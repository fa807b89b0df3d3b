/**
 * Garbage collector: deletes objects without existing owners, for every served kind, and completes foreground and
 * orphan deletion. Watches the metadata of all objects: `graph.ts` finds work, `collector.ts` does it.
 */
import { discover, type DiscoveryResult, KindMap, type ServedKind } from '#client/discovery.ts'
import type { MetadataWatch } from '#client/informers.ts'
import { onAbort } from '#lib/abort.ts'
import { sleep } from '#lib/clock.ts'
import { apiVersionOf, groupKindText, groupResourceText, kindKey } from '#meta/kind.ts'
import type { OwnerReference } from '#meta/object.ts'
import { rule, EVENTS } from '#reconcile/controller.ts'
import { runPeriodically } from '#reconcile/periodic.ts'

import { perRun } from '../../controller.ts'
import { type Controller, type ControllerContext, defineController } from '../../controller.ts'
import { Collector } from './collector.ts'
import { Graph, type Node } from './graph.ts'
import { identityIn, identityText } from './identity.ts'
import { LiveServer } from './live.ts'

/** The period of discovery, and the sync timeout for a new kind. */
const RESYNC_MS = 30_000
/** Kinds with many short-lived objects. */
const IGNORED: ReadonlySet<string> = new Set(['events', 'events.events.k8s.io'])
const ORPHAN_KEY = 'orphan:'

const collectionOf = perRun((context) => new Collection(context))

export const garbageCollectorController: Controller = defineController({
  name: 'garbage-collector-controller',
  aliases: ['garbagecollector'],
  account: 'generic-garbage-collector',
  pace: { qps: 2 },
  watches: [],
  rules: [rule('*', '*', 'get list watch patch update delete'), EVENTS],

  reconcile: (key, context) => collectionOf(context).reconcile(key),
  async run(context) {
    if (context.settings['enable-garbage-collector']) await collectionOf(context).run()
  },
})

class Collection {
  readonly #context: ControllerContext
  readonly #graph: Graph
  readonly #collector: Collector
  readonly #monitors = new Map<string, MetadataWatch>()
  #kinds = new KindMap([])
  /** Work starts only with synced caches: orphaning must see all dependents. */
  #readiness = Promise.withResolvers<void>()

  constructor(context: ControllerContext) {
    const { client, signal, enqueue } = context
    this.#context = context
    const look = (node: Node): void => enqueue(node.uid)
    this.#graph = new Graph({
      enqueue: look,
      orphan: ({ uid }) => enqueue(ORPHAN_KEY + uid),
      misplaced: (node, owner) => this.#reportMisplaced(node, owner),
    })
    const live = new LiveServer(client, signal, () => this.#kinds)
    this.#collector = new Collector(this.#graph, live, look)
  }

  async reconcile(key: string): ReturnType<Controller['reconcile']> {
    await this.#readiness.promise
    if (this.#context.signal.aborted) return undefined
    if (key.startsWith(ORPHAN_KEY)) return this.#collector.orphan(key.slice(ORPHAN_KEY.length))
    return this.#collector.process(key)
  }

  async run(): Promise<void> {
    onAbort(this.#context.signal, () => this.#readiness.resolve())
    const failures = this.#context.meters.family('garbagecollector_controller_resources_sync_error_total').labels()
    await runPeriodically(this.#context, RESYNC_MS, 'Failed to discover resources', () =>
      this.#resync().catch((error: unknown) => {
        failures.inc()
        throw error
      }),
    )
  }

  async #resync(): Promise<void> {
    const { client, clock, signal } = this.#context
    const discovered = await discover(client, signal)
    this.#kinds = new KindMap(discovered.kinds)
    const wanted = new Map(collected(discovered).map((kind) => [kindKey(kind), kind]))
    const fresh = [...wanted].filter(([key]) => !this.#monitors.has(key))
    if (fresh.length > 0 && this.#monitors.size > 0) this.#pause()
    for (const [key, kind] of fresh) this.#monitors.set(key, this.#monitor(kind))
    const versions = new Set(discovered.unknown)
    for (const [key, monitor] of this.#monitors) {
      const isUnknown = versions.has(apiVersionOf(monitor.informer.kind))
      if (!wanted.has(key) && !isUnknown) this.#drop(key, monitor)
    }
    const limit = new AbortController()
    const seen = Promise.all(Array.from(this.#monitors.values(), ({ informer }) => informer.synced))
    const late = sleep(clock, RESYNC_MS, AbortSignal.any([signal, limit.signal])).catch(() => undefined)
    await Promise.race([seen, late])
    limit.abort()
    this.#readiness.resolve()
  }

  #pause(): void {
    if (!this.#context.signal.aborted) this.#readiness = Promise.withResolvers()
  }

  #monitor(kind: ServedKind): MetadataWatch {
    return this.#context.metadataOf(kind, {
      added: (object) => this.#graph.observe(kind, object, undefined),
      updated: (object, old) => this.#graph.observe(kind, object, old),
      deleted: (object) => this.#graph.remove(kind, object),
    })
  }

  /** If another version of the kind replaces this watch, changes in between must be verified. */
  #drop(key: string, monitor: MetadataWatch): void {
    monitor.stop()
    this.#monitors.delete(key)
    const { informer } = monitor
    if (this.#kinds.ofKind(informer.kind) === undefined) return
    for (const { metadata } of informer.list()) this.#graph.doubt(metadata.uid ?? '')
  }

  #reportMisplaced({ identity }: Node, owner: OwnerReference): void {
    const { apiVersion, kind, namespace, name, uid } = identity
    const message = `ownerRef ${identityText(identityIn(namespace, owner))} does not exist in namespace "${namespace}"`
    const about = { apiVersion, kind, metadata: { ...(namespace !== '' && { namespace }), name, uid } }
    this.#context.event(about, { type: 'Warning', reason: 'OwnerRefInvalidNamespace', message })
  }
}

/** Each kind once, in the preferred version, if it supports watch and delete. */
function collected({ kinds }: DiscoveryResult): ServedKind[] {
  const byKind = new Map<string, ServedKind>()
  for (const kind of kinds) {
    const isUsable = ['delete', 'list', 'watch'].every((verb) => kind.verbs.includes(verb))
    const isIgnored = IGNORED.has(groupResourceText({ group: kind.group, resource: kind.plural }))
    const name = groupKindText(kind)
    if (isUsable && !isIgnored && !byKind.has(name)) byKind.set(name, kind)
  }
  return [...byKind.values()]
}
