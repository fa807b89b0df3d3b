/** What the API server tells, told on: to the picture of the cluster, to the queue, and to those who wait for it. */
import { Namespaces, type Node, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { Informer } from '#client/informer.ts'
import type { Clock } from '#lib/clock.ts'
import { kindKey } from '#meta/kind.ts'
import { type KubeObject, semanticEqual } from '#meta/object.ts'
import { isTerminal } from '#model/pods.ts'

import type { Cluster } from './cluster.ts'
import type { Meter } from './framework.ts'
import { labelOf, newsOf, newsOfNode, newsOfPod, type News } from './news.ts'
import type { Nominations } from './nominations.ts'
import { PodInfo } from './pod-info.ts'
import type { SchedulingQueue } from './queue.ts'

export interface FeedParts {
  readonly cluster: Cluster
  readonly queue: SchedulingQueue
  readonly nominations: Nominations
  readonly clock: Clock
  readonly meter: Meter
  /** Whether it is ours to place. */
  readonly isOurs: (pod: Pod) => boolean
  readonly isEnabled: (gate: string) => boolean
  readonly of: <T extends KubeObject>(kind: Kind<T>) => Informer<T>
  /** Further kinds that plugins wait for. */
  readonly kinds: readonly Kind[]
}

export function feed(parts: FeedParts): void {
  const { cluster, of } = parts
  const tell = teller(parts)
  of(Namespaces).listen({
    updated(now, old) {
      if (!semanticEqual(now.metadata.labels, old.metadata.labels)) cluster.counts.namespacesChanged()
    },
  })
  of(Nodes).listen({
    added: (node) => (cluster.setNode(node), tell(newsOfNode(Nodes, node, undefined))),
    updated: (node: Node, old) => (cluster.setNode(node), tell(newsOfNode(Nodes, node, old))),
    deleted: (node) => (cluster.removeNode(node.metadata.name ?? ''), tell(newsOfNode(Nodes, undefined, node))),
  })
  const pods = new PodFeed(parts)
  of(Pods).listen({
    added: (pod) => pods.changed(pod, undefined),
    updated: (pod, old) => pods.changed(pod, old),
    deleted: (pod) => pods.gone(pod),
  })
  const own = new Set([Nodes, Pods].map(kindKey))
  for (const kind of parts.kinds.filter((one) => !own.has(kindKey(one)))) {
    of(kind).listen({
      added: (now) => tell(newsOf(kind, now, undefined)),
      updated: (now, old) => tell(newsOf(kind, now, old)),
      deleted: (old) => tell(newsOf(kind, undefined, old)),
    })
  }
}

/** Lets those in the queue know. */
function teller({ queue, clock, meter }: FeedParts): (news: News | undefined) => void {
  return (news) => {
    if (news === undefined) return
    const begunMs = clock.elapsed()
    queue.tell(news)
    meter.handled(labelOf(news), clock.elapsed() - begunMs)
  }
}

class PodFeed {
  readonly #parts: FeedParts
  readonly #tell: (news: News | undefined) => void

  constructor(parts: FeedParts) {
    this.#parts = parts
    this.#tell = teller(parts)
  }

  changed(pod: Pod, old: Pod | undefined): void {
    if (isTerminal(pod)) {
      if (old === undefined || !isTerminal(old)) this.gone(old ?? pod)
    } else if ((pod.spec.nodeName ?? '') !== '') this.#placed(pod, old)
    else if (this.#parts.isOurs(pod)) this.#waiting(pod, old)
  }

  /** Deleted, or as good as: it takes up no room any more. */
  gone(pod: Pod): void {
    const { cluster, queue, nominations } = this.#parts
    const uid = pod.metadata.uid ?? ''
    const hadPlace = cluster.placed(uid) !== undefined || nominations.nodeOf(uid) !== undefined
    cluster.groups.remove(pod)
    cluster.removePod(uid)
    queue.delete(uid)
    nominations.delete(uid)
    this.#tell(hadPlace ? newsOfPod('AssignedPod', undefined, pod) : undefined)
  }

  #placed(pod: Pod, old: Pod | undefined): void {
    const { cluster, queue, nominations } = this.#parts
    const info = new PodInfo(pod, cluster.podWithPlace(pod.metadata.uid ?? ''))
    const wasPlaced = old !== undefined && (old.spec.nodeName ?? '') !== ''
    cluster.groups.add(info)
    cluster.setPod(info, pod.spec.nodeName ?? '')
    if (!wasPlaced) {
      queue.delete(info.uid)
      nominations.delete(info.uid)
    }
    this.#tell(newsOfPod('AssignedPod', pod, wasPlaced ? old : undefined))
  }

  #waiting(pod: Pod, old: Pod | undefined): void {
    const { cluster, queue, nominations, isEnabled } = this.#parts
    const info = new PodInfo(pod)
    cluster.groups.add(info)
    // We know better: it is on its way.
    if (cluster.isAssumed(info.uid)) return
    const nominated = pod.status.nominatedNodeName ?? ''
    // What has not been told yet, or is just being told, holds.
    const isUntold = nominated === '' && old !== undefined && (old.status.nominatedNodeName ?? '') === ''
    nominations.set(info, isUntold ? (nominations.nodeOf(info.uid) ?? '') : nominated)
    queue.update(info)
    // Others of its group may have waited for it.
    const isNew = old === undefined && pod.spec.schedulingGroup !== undefined && isEnabled('GangScheduling')
    this.#tell(isNew ? newsOfPod('WaitingPod', pod, undefined) : undefined)
  }
}
