/** What a kubelet hears from the API server: its node, its pods, and the Services that containers are told of. */
import { type Node, Nodes, type Pod, Pods, type Service, Services } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { follow } from '#client/follow.ts'
import type { BackoffPolicy } from '#lib/backoff.ts'
import { compareText } from '#lib/go-text.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'
import type { ObjectEvent } from '#meta/watch.ts'

import type { NodeTraits } from './admission-rules.ts'
import type { PodWorkers } from './pods/pod-workers.ts'
import { fromServer } from './static-pods/manifest.ts'
import type { StaticPods } from './static-pods/static-pods.ts'

/** What the API server says that pods need to know. */
export interface Known {
  node: Node | undefined
  readonly services: Map<string, Service>
  /** `MemoryPressure` and so on. */
  pressures: () => readonly string[]
  isShuttingDown: () => boolean
  /** What the node says of itself has changed. */
  hurry: () => void
}

/** Before anybody has said anything. */
export function nothingKnown(): Known {
  return {
    node: undefined,
    services: new Map(),
    pressures: () => [],
    isShuttingDown: () => false,
    hurry: () => undefined,
  }
}

export function traitsKnown({ pressures, isShuttingDown }: Known): NodeTraits {
  return { pressures: pressures(), isShuttingDown: isShuttingDown() }
}

export interface NodeNewsOptions {
  readonly name: string
  readonly client: ApiClient
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  readonly known: Known
  readonly workers: PodWorkers
  readonly statics: StaticPods
}

/** A node that hears nothing is lost to its pods: it asks more often than others who follow, though not all nodes at once. */
const RETRY: BackoffPolicy = { baseMs: 800, capMs: 10_000, jitter: 1 }

/** Until the signal is aborted. */
export function followAll(options: NodeNewsOptions): void {
  const { name, client, random, log, known, signal } = options
  const failed = (error: unknown): void => log.error(error, 'What the API server says could not be heard')
  const all = { client, random, signal, retry: RETRY }
  void follow(
    { ...all, kind: Nodes, selection: { fieldSelector: `metadata.name=${name}` } },
    {
      replace: ([node]) => void (known.node = node),
      change: ({ type, object }: ObjectEvent<Node>) => void (known.node = type === 'DELETED' ? undefined : object),
      failed,
    },
  )
  void follow({ ...all, kind: Services }, servicesInto(known.services, failed))
  const ofNode = { fieldSelector: `spec.nodeName=${name}` }
  void follow({ ...all, kind: Pods, selection: ofNode }, podsInto(options, failed))
}

type Failed = (error: unknown) => void

function servicesInto(services: Map<string, Service>, failed: Failed): Parameters<typeof follow<Service>>[1] {
  const key = ({ metadata }: Service): string => `${metadata.namespace}/${metadata.name}`
  return {
    replace(all) {
      services.clear()
      for (const service of all) services.set(key(service), service)
    },
    change({ type, object }) {
      if (type === 'DELETED') services.delete(key(object))
      else services.set(key(object), object)
    },
    failed,
  }
}

const byAge = ({ metadata: a }: Pod, { metadata: b }: Pod): number =>
  compareText(a.creationTimestamp ?? '', b.creationTimestamp ?? '')

/** What has gone while nobody listened is told as deleted. Mirrors of static pods are not run. */
function podsInto({ workers, statics }: NodeNewsOptions, failed: Failed): Parameters<typeof follow<Pod>>[1] {
  return {
    replace(all) {
      const there = new Set(all.map(({ metadata }) => metadata.uid))
      const gone = Array.from(workers.pods(), ({ pod }) => pod).filter(
        ({ metadata: { uid = '' } }) => !there.has(uid) && !statics.has(uid),
      )
      for (const object of gone) workers.learn({ type: 'DELETED', object })
      // Who came first is taken first.
      for (const object of statics.hearsAll(all).toSorted(byAge)) {
        workers.learn({ type: 'ADDED', object: fromServer(object) })
      }
      workers.sourcesReady()
    },
    change(event) {
      if (!statics.hears(event)) workers.learn({ ...event, object: fromServer(event.object) })
    },
    failed,
  }
}
