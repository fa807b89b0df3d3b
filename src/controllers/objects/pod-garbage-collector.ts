/**
 * Pod garbage collector: every 20 seconds deletes terminated pods above the threshold, pods of deleted or
 * out-of-service nodes, and terminating pods without a node.
 */
import { type Node, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import { type Cause, causeOf, withCauses } from '#lib/causes.ts'
import { compareText } from '#lib/go/text.ts'
import { yieldToEventLoop } from '#lib/time-slicing.ts'
import { isBeingDeleted, objectKey } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { disruptionTarget } from '#model/disruption-target.ts'
import { isTerminal } from '#model/pods.ts'
import { rule } from '#reconcile/controller.ts'
import { runPeriodically } from '#reconcile/periodic.ts'

import { type Controller, type ControllerContext, defineController } from '../controller.ts'

const PERIOD_MS = 20_000
/** A node that is missing in the cache may be new. */
const QUARANTINE_MS = 40_000
const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service'

export const podGarbageCollectorController: Controller = defineController({
  name: 'pod-garbage-collector-controller',
  aliases: ['podgc'],
  account: 'pod-garbage-collector',
  watches: [],
  reads: [Pods, Nodes],
  rules: [rule('', 'pods', 'delete list watch'), rule('', 'nodes', 'get list watch'), rule('', 'pods/status', 'patch')],

  reconcile: () => Promise.resolve(),

  run(context) {
    const memory: NodeMemory = { missingSinceMs: new Map(), deletions: new Map() }
    context.metadataOf(Nodes, {
      deleted: (node) => memory.deletions.set(node.metadata.name ?? '', causeOf(Nodes, node)),
    })
    return runPeriodically(context, PERIOD_MS, 'Failed to collect pods', () => collect(memory, context))
  },
})

interface NodeMemory {
  readonly missingSinceMs: Map<string, number>
  /** The last seen version of deleted nodes. */
  readonly deletions: Map<string, Cause>
}

async function collect(memory: NodeMemory, context: ControllerContext): Promise<void> {
  const { cache, settings } = context
  const pods = [...cache.list(Pods)]
  const looks: readonly (readonly [Reason, () => Promise<Pod[]> | Pod[]])[] = [
    ['terminated', () => surplus(pods, settings['terminated-pod-gc-threshold'])],
    ['out-of-service', () => pods.filter((pod) => isBeingDeleted(pod) && isOutOfService(nodeOf(pod)))],
    ['orphaned', () => orphansOf(pods, memory, context)],
    ['unscheduled', () => pods.filter((pod) => isBeingDeleted(pod) && (pod.spec.nodeName ?? '') === '')],
  ]
  const nodeOf = ({ spec }: Pod): Node | undefined => cache.get(Nodes, spec.nodeName ?? '')
  const removed = new Set<string>()
  for (const [reason, find] of looks) {
    // Each of these visits all pods.
    await yieldToEventLoop()
    for (const pod of await find()) {
      if (removed.has(objectKey(pod))) continue
      removed.add(objectKey(pod))
      const node = nodeOf(pod)
      const deletion = node === undefined ? memory.deletions.get(pod.spec.nodeName ?? '') : causeOf(Nodes, node)
      await withCauses(causesOf(pod, reason, deletion), () => remove(pod, reason, context))
    }
  }
}

/** `node`: its last seen version. */
function causesOf(pod: Pod, reason: Reason, node: Cause | undefined): Cause[] {
  if (reason === 'terminated') return []
  if (reason === 'unscheduled') return [causeOf(Pods, pod)]
  return node === undefined ? [] : [node]
}

/** Terminated pods above the limit in the whole cluster: evicted ones first, then the oldest. */
export function surplus(pods: readonly Pod[], limit: number): Pod[] {
  if (limit <= 0) return []
  const ended = pods.filter(({ status: { phase = '' } }) => !['Pending', 'Running', 'Unknown'].includes(phase))
  const isEvicted = ({ status: { phase, reason } }: Pod): number => (phase === 'Failed' && reason === 'Evicted' ? 0 : 1)
  const madeAt = ({ metadata }: Pod): string => metadata.creationTimestamp ?? ''
  const inOrder = ended.toSorted(
    (a, b) =>
      isEvicted(a) - isEvicted(b) ||
      compareText(madeAt(a), madeAt(b)) ||
      compareText(a.metadata.name ?? '', b.metadata.name ?? ''),
  )
  return inOrder.slice(0, Math.max(0, ended.length - limit))
}

function isOutOfService(node: Node | undefined): boolean {
  const isReady = node?.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
  if (node === undefined || isReady) return false
  return node.spec.taints?.some(({ key }) => key === OUT_OF_SERVICE) ?? false
}

/** Pods of nodes that were missing for the quarantine time and that the server does not have either. */
async function orphansOf(
  pods: readonly Pod[],
  { missingSinceMs, deletions }: NodeMemory,
  { cache, client, clock, signal }: ControllerContext,
): Promise<Pod[]> {
  const used = new Set(pods.map(({ spec }) => spec.nodeName ?? '').filter((name) => name !== ''))
  const missing = new Set([...used].filter((name) => cache.get(Nodes, name) === undefined))
  for (const name of missingSinceMs.keys()) if (!missing.has(name)) missingSinceMs.delete(name)
  for (const name of deletions.keys()) if (!missing.has(name)) deletions.delete(name)
  const gone = new Set<string>()
  for (const name of missing) {
    const sinceMs = missingSinceMs.get(name)
    if (sinceMs === undefined) missingSinceMs.set(name, clock.elapsed())
    else if (clock.elapsed() - sinceMs >= QUARANTINE_MS) {
      const isThere = await client.get(Nodes, { name }, { signal }).then(
        () => true,
        (error: unknown) => !isNotFound(error),
      )
      if (!isThere) gone.add(name)
    }
  }
  return pods.filter(({ spec }) => gone.has(spec.nodeName ?? ''))
}

/** The label values in metrics. */
type Reason = 'terminated' | 'out-of-service' | 'orphaned' | 'unscheduled'

/** Sets the Failed phase with a reason, then deletes without grace period. */
async function remove(pod: Pod, reason: Reason, context: ControllerContext): Promise<void> {
  const { client, signal, log, meters } = context
  const { namespace = '', name = '', uid = '' } = pod.metadata
  const isLost = reason === 'orphaned' || reason === 'out-of-service'
  try {
    if (isLost && !isTerminal(pod)) await fail(pod, reason, context)
    await client.delete(Pods, { namespace, name }, { gracePeriodSeconds: 0, preconditions: { uid }, signal })
    meters.family('pod_gc_collector_force_delete_pods_total').labels(namespace, reason).inc()
  } catch (error) {
    if (isNotFound(error) || signal.aborted) return
    meters.family('pod_gc_collector_force_delete_pod_errors_total').labels(namespace, reason).inc()
    log.error(error, 'Failed to delete pod', { pod: objectKey(pod) })
  }
}

async function fail(pod: Pod, reason: Reason, { client, clock, signal }: ControllerContext): Promise<void> {
  const { namespace, name = '', uid, generation } = pod.metadata
  const why = {
    reason: 'DeletionByPodGC',
    message: 'PodGC: node no longer exists',
    ...(generation !== undefined && { observedGeneration: generation }),
  }
  const status = { phase: 'Failed', ...(reason === 'orphaned' && disruptionTarget(pod, why, clock.now())) }
  const patch = { type: 'strategic', value: { metadata: { uid }, status } } as const
  await client.patch(Pods, { namespace, name, subresource: 'status' }, patch, { signal })
}
