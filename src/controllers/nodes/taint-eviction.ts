/**
 * Taint eviction: deletes pods on nodes with NoExecute taints, at once or after the tolerated time. The time counts
 * from this controller's first observation; removing the taint in time cancels the eviction.
 */
import { type Node, Nodes, type Pod, Pods, type Taint } from '#apis/core/v1.ts'
import { causeOf, withCause } from '#lib/causes.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { isBeingDeleted, objectKey, semanticEqual } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { disruptionTarget } from '#model/disruption-target.ts'
import { tolerates, tolerationRule } from '#model/nodes/fit.ts'
import type { Cache } from '#reconcile/cache.ts'
import { itself, related, rule, EVENTS } from '#reconcile/controller.ts'

import { perRun } from '../controller.ts'
import { type Controller, type ControllerContext, defineController } from '../controller.ts'
import { podsOn } from './node-pods.ts'

/** Eviction times by pod key; constant while the taints are tolerated. */
const waitingOf = perRun(() => new Map<string, number>())

export const taintEvictionController: Controller = defineController({
  name: 'taint-eviction-controller',
  account: 'node-controller',
  workers: 8,
  watches: [
    { ...itself(Pods), concerns: isRelevantChange },
    related(Nodes, podKeysOn, (node, old) => !semanticEqual(evicting(node), evicting(old))),
  ],
  rules: [
    rule('', 'nodes', 'get list watch'),
    rule('', 'pods', 'delete get list watch'),
    rule('', 'pods/status', 'patch update'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const { cache, clock } = context
    const waiting = waitingOf(context)
    const pod = cache.get(Pods, key)
    const node = cache.get(Nodes, pod?.spec.nodeName ?? '')
    const leaveMs =
      pod === undefined || node === undefined
        ? Infinity
        : toleratedMs(pod, evicting(node), tolerationRule(context.isEnabled))
    if (leaveMs === Infinity || pod === undefined || isBeingDeleted(pod)) {
      if (waiting.delete(key)) recordEvent(key, `Cancelling deletion of Pod ${key}`, context)
      return undefined
    }
    if (leaveMs === undefined && waiting.delete(key)) recordEvent(key, `Cancelling deletion of Pod ${key}`, context)
    const atMs = waiting.get(key) ?? clock.now() + (leaveMs ?? 0)
    if (atMs > clock.now()) {
      waiting.set(key, atMs)
      return { requeueAfterMs: atMs - clock.now() } satisfies Requeue
    }
    waiting.delete(key)
    recordEvent(key, `Marking for deletion Pod ${key}`, context)
    return withCause(causeOf(Nodes, node as Node), () => evict(pod, atMs, context))
  },
})

function isRelevantChange(pod: object, old: object): boolean {
  const comparedFields = ({ spec, metadata }: Pod): unknown => [
    spec.nodeName,
    spec.tolerations,
    metadata.deletionTimestamp,
  ]
  return !semanticEqual(comparedFields(pod as Pod), comparedFields(old as Pod))
}

function podKeysOn({ metadata }: Node, cache: Cache): string[] {
  return podsOn(metadata.name ?? '', cache).map(objectKey)
}

function evicting({ spec }: Node): Taint[] {
  return (spec.taints ?? []).filter(({ effect }) => effect === 'NoExecute')
}

/** The shortest tolerated time; undefined if a taint is not tolerated. */
export function toleratedMs(
  { spec: { tolerations = [] } }: Pod,
  taints: readonly Taint[],
  isTolerated: typeof tolerates = tolerates,
): number | undefined {
  const used = taints.map((taint) => tolerations.find((toleration) => isTolerated(toleration, taint)))
  if (used.includes(undefined)) return undefined
  const seconds = used.map((toleration) => Math.max(0, toleration?.tolerationSeconds ?? Infinity))
  return Math.min(Infinity, ...seconds) * 1000
}

/** The event references the pod only by name, as upstream. */
function recordEvent(key: string, message: string, { event }: ControllerContext): void {
  const [namespace = '', name = ''] = key.split('/')
  const about = { kind: 'Pod', apiVersion: 'v1', metadata: { namespace, name } }
  event(about, { type: 'Normal', reason: 'TaintManagerEviction', message })
}

async function evict(
  pod: Pod,
  dueMs: number,
  { client, clock, meters, signal }: ControllerContext,
): Promise<undefined> {
  const { namespace, name = '', uid, generation } = pod.metadata
  const why = {
    reason: 'DeletionByTaintManager',
    message: 'Taint manager: deleting due to NoExecute taint',
    ...(generation !== undefined && { observedGeneration: generation }),
  }
  const value = { metadata: { uid }, status: disruptionTarget(pod, why, clock.now()) }
  try {
    await client.patch(Pods, { namespace, name, subresource: 'status' }, { type: 'strategic', value }, { signal })
    await client.delete(Pods, { namespace, name }, { signal })
    meters.family('taint_eviction_controller_pod_deletions_total').labels().inc()
    const latency = meters.family('taint_eviction_controller_pod_deletion_duration_seconds').labels()
    latency.observe((clock.now() - dueMs) / 1000)
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
  return undefined
}
