/** Sets the pods of an unresponsive node to not ready. */
import { type Pod, Pods } from '#apis/core/v1.ts'
import { isNotFound } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'

import type { ControllerContext } from '../../controller.ts'

/** Tries all pods. Throws the first error. */
export async function markNotReady(pods: readonly Pod[], context: ControllerContext): Promise<void> {
  const failures: unknown[] = []
  for (const pod of pods) await mark(pod, context).catch((error: unknown) => failures.push(error))
  if (failures.length > 0) throw failures[0]
}

async function mark(pod: Pod, { client, clock, event, signal }: ControllerContext): Promise<void> {
  const { conditions = [] } = pod.status
  if (!conditions.some(({ type, status }) => type === 'Ready' && status !== 'False')) return
  const now = timeOf(clock.now())
  const marked = conditions.map((condition) =>
    condition.type === 'Ready' ? { ...condition, status: 'False', lastTransitionTime: now } : condition,
  )
  try {
    await client.updateStatus(Pods, { ...pod, status: { ...pod.status, conditions: marked } }, { signal })
  } catch (error) {
    if (isNotFound(error)) return
    throw error
  }
  event(pod, { type: 'Warning', reason: 'NodeNotReady', message: 'Node is not ready' })
}
