/** Watches the API server for the node, its pods and all Services, and passes pods to the workers. */
import { type Node, Nodes, type Pod, Pods, type Service, Services } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { follow } from '#client/reflector.ts'
import type { BackoffPolicy } from '#lib/backoff.ts'
import { compareText } from '#lib/go/text.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'
import type { ObjectEvent } from '#meta/watch.ts'

import type { NodeState } from './node/node-state.ts'
import type { PodWorkers } from './pods/pod-workers.ts'
import { fromServer } from './static-pods/manifest.ts'
import type { StaticPods } from './static-pods/static-pods.ts'

export interface PodSourcesOptions {
  readonly name: string
  readonly client: ApiClient
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  readonly nodeState: NodeState
  readonly workers: PodWorkers
  readonly statics: StaticPods
}

/** Retries sooner than other watches, because pods depend on them; jitter spreads the nodes. */
const RETRY: BackoffPolicy = { baseMs: 800, capMs: 10_000, jitter: 1 }

/** Runs until the signal is aborted. */
export function startPodSources(options: PodSourcesOptions): void {
  const { name, client, random, log, nodeState, signal } = options
  const failed = (error: unknown): void => log.error(error, 'Failed to watch the Node, pods or Services')
  const all = { client, random, signal, retry: RETRY }
  void follow(
    { ...all, kind: Nodes, selection: { fieldSelector: `metadata.name=${name}` } },
    {
      replace: ([node]) => void (nodeState.node = node),
      change: ({ type, object }: ObjectEvent<Node>) => void (nodeState.node = type === 'DELETED' ? undefined : object),
      failed,
    },
  )
  void follow({ ...all, kind: Services }, serviceHandler(nodeState.services, failed))
  const ofNode = { fieldSelector: `spec.nodeName=${name}` }
  void follow({ ...all, kind: Pods, selection: ofNode }, podHandler(options, failed))
}

type Failed = (error: unknown) => void

function serviceHandler(services: Map<string, Service>, failed: Failed): Parameters<typeof follow<Service>>[1] {
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

/** A pod missing from a new list counts as deleted. Mirror pods are not run. */
function podHandler({ workers, statics }: PodSourcesOptions, failed: Failed): Parameters<typeof follow<Pod>>[1] {
  return {
    replace(all) {
      const there = new Set(all.map(({ metadata }) => metadata.uid))
      const gone = Array.from(workers.registry.pods(), ({ pod }) => pod).filter(
        ({ metadata: { uid = '' } }) => !there.has(uid) && !statics.has(uid),
      )
      for (const object of gone) workers.updatePod({ type: 'DELETED', object })
      // Oldest first, so that admission prefers older pods.
      for (const object of statics.handleList(all).toSorted(byAge)) {
        workers.updatePod({ type: 'ADDED', object: fromServer(object) })
      }
      workers.sourcesReady()
    },
    change(event) {
      if (!statics.handleEvent(event)) workers.updatePod({ ...event, object: fromServer(event.object) })
    },
    failed,
  }
}
