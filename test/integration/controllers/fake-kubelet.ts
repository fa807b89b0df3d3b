/**
 * A fake kubelet without containers for workload tests: assigns pods to a node, sets their phase on request, and
 * deletes them.
 */
import { type Pod, Pods, type PodStatus } from '#apis/core/v1.ts'
import { type Controller, type ControllerContext, defineController } from '#controllers/controller.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { isBeingDeleted, objectKey } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'
import { isTerminal } from '#model/pods.ts'
import { itself } from '#reconcile/controller.ts'

/** The outcome of a pod: ready, running but not ready, pending, or ended with an exit code. */
export type Fate = 'ready' | 'running' | 'pending' | { readonly exitCode: number }

export interface FakeKubelet extends Controller {
  /** Called whenever the fake kubelet processes a pod; by default all pods become ready. */
  fate: (pod: Pod) => Fate
  /** How long a pod takes to get there. */
  delayMs: number
  /** How long a deleted pod stays. */
  stopMs: number
  /** Looks at every pod again. */
  look(): void
}

export function createFakeKubelet(): FakeKubelet {
  const contexts: ControllerContext[] = []
  const kubelet: FakeKubelet = {
    ...defineController({
      name: 'fake-kubelet',
      watches: [itself(Pods)],
      rules: [],
      async reconcile(key, context) {
        if (contexts.length === 0) contexts.push(context)
        const pod = context.cache.get(Pods, key)
        if (pod === undefined) return
        try {
          return await live(pod, kubelet, context)
        } catch (error) {
          if (!isNotFound(error)) throw error
        }
      },
    }),
    fate: () => 'ready',
    delayMs: 0,
    stopMs: 0,
    look() {
      for (const context of contexts) for (const pod of context.cache.list(Pods)) context.enqueue(objectKey(pod))
    },
  }
  return kubelet
}

async function live(pod: Pod, kubelet: FakeKubelet, context: ControllerContext): Promise<Requeue | void> {
  const { client, clock } = context
  const { namespace, name = '', creationTimestamp, deletionTimestamp } = pod.metadata
  const nowMs = clock.now()
  if (isBeingDeleted(pod)) {
    const sinceMs = epochMsOf(deletionTimestamp ?? '') - (pod.metadata.deletionGracePeriodSeconds ?? 0) * 1000
    const waitMs = sinceMs + kubelet.stopMs - nowMs
    if (waitMs > 0) return { requeueAfterMs: waitMs }
    if ((pod.metadata.finalizers ?? []).length > 0 && !isTerminal(pod)) await report(pod, { exitCode: 137 }, context)
    return client.delete(Pods, { namespace, name }, { gracePeriodSeconds: 0 })
  }
  if (isTerminal(pod)) return
  if ((pod.spec.nodeName ?? '') === '') return bind(pod, context)
  const waitMs = epochMsOf(creationTimestamp ?? '') + kubelet.delayMs - nowMs
  if (waitMs > 0) return { requeueAfterMs: waitMs }
  await report(pod, kubelet.fate(pod), context)
}

/** To the node that its affinity names, or to the only one there is. */
async function bind(pod: Pod, { client }: ControllerContext): Promise<void> {
  const { namespace, name = '' } = pod.metadata
  const terms = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  const node = terms?.[0]?.matchFields?.[0]?.values?.[0] ?? 'node'
  const binding = {
    kind: 'Binding',
    metadata: { namespace: namespace ?? '', name },
    target: { kind: 'Node', name: node },
  }
  await client.create(Pods, binding as never, { subresource: 'binding' }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error
  })
}

async function report(pod: Pod, fate: Fate, { client, clock }: ControllerContext): Promise<void> {
  const { namespace, name = '' } = pod.metadata
  const status = statusFor(pod, fate, timeOf(clock.now()))
  if (status.phase === pod.status.phase && readyIn(status) === readyIn(pod.status)) return
  const where = { namespace, name, subresource: 'status' }
  await client.patch(Pods, where, { type: 'merge', value: { status } })
}

function readyIn({ conditions }: Partial<PodStatus>): string {
  return conditions?.find(({ type }) => type === 'Ready')?.status ?? 'False'
}

function statusFor(pod: Pod, fate: Fate, now: string): Partial<PodStatus> {
  if (fate === 'pending') return { phase: 'Pending' }
  const ready = { type: 'Ready', status: fate === 'ready' ? 'True' : 'False', lastTransitionTime: now }
  if (typeof fate === 'string') return { phase: 'Running', conditions: [ready] } as never
  const { exitCode } = fate
  const containerStatuses = (pod.spec.containers ?? []).map(({ name, image = '' }) => ({
    name,
    image,
    imageID: '',
    ready: false,
    restartCount: 0,
    state: { terminated: { exitCode, startedAt: now, finishedAt: now } },
  }))
  return { phase: exitCode === 0 ? 'Succeeded' : 'Failed', conditions: [ready], containerStatuses } as never
}
