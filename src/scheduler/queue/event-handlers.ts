/** Event handlers of the scheduler's informers: they update the cache, the queue and the nominations. */
import { Namespaces, type Node, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { Informer } from '#client/informer.ts'
import type { Clock } from '#lib/clock.ts'
import { kindKey } from '#meta/kind.ts'
import { type KubeObject, semanticEqual } from '#meta/object.ts'
import { isTerminal } from '#model/pods.ts'

import type { Cluster } from '../cluster/cluster.ts'
import type { Nominations } from '../cluster/nominations.ts'
import { PodInfo } from '../cluster/pod-info.ts'
import type { Meter } from '../framework/framework.ts'
import { type ClusterEvent, labelOf, nodeEvent, objectEvent, podEvent } from './cluster-events.ts'
import type { SchedulingQueue } from './queue.ts'

export interface EventHandlerParts {
  readonly cluster: Cluster
  readonly queue: SchedulingQueue
  readonly nominations: Nominations
  readonly clock: Clock
  readonly meter: Meter
  /** Whether this scheduler is responsible for the pod. */
  readonly isOurs: (pod: Pod) => boolean
  readonly isEnabled: (gate: string) => boolean
  readonly of: <T extends KubeObject>(kind: Kind<T>) => Informer<T>
  /** Further kinds that plugins registered for. */
  readonly kinds: readonly Kind[]
}

export function addEventHandlers(parts: EventHandlerParts): void {
  const { cluster, of } = parts
  const notify = eventNotifier(parts)
  of(Namespaces).listen({
    updated(now, old) {
      if (!semanticEqual(now.metadata.labels, old.metadata.labels)) cluster.counts.namespacesChanged()
    },
  })
  of(Nodes).listen({
    added: (node) => (cluster.setNode(node), notify(nodeEvent(Nodes, node, undefined))),
    updated: (node: Node, old) => (cluster.setNode(node), notify(nodeEvent(Nodes, node, old))),
    deleted: (node) => (cluster.removeNode(node.metadata.name ?? ''), notify(nodeEvent(Nodes, undefined, node))),
  })
  const pods = new PodEventHandler(parts)
  of(Pods).listen({
    added: (pod) => pods.changed(pod, undefined),
    updated: (pod, old) => pods.changed(pod, old),
    deleted: (pod) => pods.gone(pod),
  })
  const own = new Set([Nodes, Pods].map(kindKey))
  for (const kind of parts.kinds.filter((one) => !own.has(kindKey(one)))) {
    of(kind).listen({
      added: (now) => notify(objectEvent(kind, now, undefined)),
      updated: (now, old) => notify(objectEvent(kind, now, old)),
      deleted: (old) => notify(objectEvent(kind, undefined, old)),
    })
  }
}

/** Returns a function that passes an event to the queue. */
function eventNotifier({ queue, clock, meter }: EventHandlerParts): (event: ClusterEvent | undefined) => void {
  return (event) => {
    if (event === undefined) return
    const begunMs = clock.elapsed()
    queue.handleEvent(event)
    meter.handled(labelOf(event), clock.elapsed() - begunMs)
  }
}

class PodEventHandler {
  readonly #parts: EventHandlerParts
  readonly #notify: (event: ClusterEvent | undefined) => void

  constructor(parts: EventHandlerParts) {
    this.#parts = parts
    this.#notify = eventNotifier(parts)
  }

  changed(pod: Pod, old: Pod | undefined): void {
    if (isTerminal(pod)) {
      if (old === undefined || !isTerminal(old)) this.gone(old ?? pod)
    } else if ((pod.spec.nodeName ?? '') !== '') this.#placed(pod, old)
    else if (this.#parts.isOurs(pod)) this.#waiting(pod, old)
  }

  /** The pod was deleted or has terminated, so its resources are free. */
  gone(pod: Pod): void {
    const { cluster, queue, nominations } = this.#parts
    const uid = pod.metadata.uid ?? ''
    const hadPlace = cluster.placed(uid) !== undefined || nominations.nodeOf(uid) !== undefined
    cluster.groups.remove(pod)
    cluster.removePod(uid)
    queue.delete(uid)
    nominations.delete(uid)
    this.#notify(hadPlace ? podEvent('AssignedPod', undefined, pod) : undefined)
  }

  #placed(pod: Pod, old: Pod | undefined): void {
    const { cluster, queue, nominations } = this.#parts
    const info = new PodInfo(pod, cluster.placedPod(pod.metadata.uid ?? ''))
    const wasPlaced = old !== undefined && (old.spec.nodeName ?? '') !== ''
    cluster.groups.add(info)
    cluster.setPod(info, pod.spec.nodeName ?? '')
    if (!wasPlaced) {
      queue.delete(info.uid)
      nominations.delete(info.uid)
    }
    this.#notify(podEvent('AssignedPod', pod, wasPlaced ? old : undefined))
  }

  #waiting(pod: Pod, old: Pod | undefined): void {
    const { cluster, queue, nominations, isEnabled } = this.#parts
    const info = new PodInfo(pod)
    cluster.groups.add(info)
    // An assumed pod is already being bound.
    if (cluster.isAssumed(info.uid)) return
    const nominated = pod.status.nominatedNodeName ?? ''
    // Keeps a nomination that is not written yet.
    const isUnwritten = nominated === '' && old !== undefined && (old.status.nominatedNodeName ?? '') === ''
    nominations.set(info, isUnwritten ? (nominations.nodeOf(info.uid) ?? '') : nominated)
    queue.update(info)
    // Waiting members of its group may now be schedulable.
    const isNew = old === undefined && pod.spec.schedulingGroup !== undefined && isEnabled('GangScheduling')
    this.#notify(isNew ? podEvent('WaitingPod', pod, undefined) : undefined)
  }
}
