/** Deletes finished Jobs after `ttlSecondsAfterFinished`. */
import { type Job, Jobs } from '#apis/batch/v1.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { isConflict, isNotFound } from '#meta/status.ts'
import { epochMsOf } from '#meta/time.ts'
import { itself, rule, EVENTS } from '#reconcile/controller.ts'

import { type Controller, type ControllerContext, defineController } from '../controller.ts'

export const ttlAfterFinishedController: Controller = defineController({
  name: 'ttl-after-finished-controller',
  aliases: ['ttl-after-finished'],
  watches: [itself(Jobs)],
  rules: [rule('batch', 'jobs', 'get list watch delete'), EVENTS],

  async reconcile(key, context) {
    const job = context.cache.get(Jobs, key)
    const wait = job === undefined ? undefined : waitMs(job, context)
    if (job === undefined || wait === undefined) return undefined
    return wait > 0 ? { requeueAfterMs: wait } : expire(job, context)
  },
})

function waitMs(job: Job, { clock }: ControllerContext): number | undefined {
  const dueMs = isBeingDeleted(job) ? undefined : expiryMs(job)
  return dueMs === undefined ? undefined : Math.max(0, dueMs - clock.now())
}

async function expire({ metadata }: Job, context: ControllerContext): Promise<Requeue | undefined> {
  const { client, clock, meters, signal } = context
  const { namespace, name = '' } = metadata
  try {
    // The TTL may have been changed.
    const fresh = await client.get(Jobs, { namespace, name }, { signal })
    const wait = waitMs(fresh, context)
    if (wait === undefined) return undefined
    if (wait > 0) return { requeueAfterMs: wait }
    const { uid = '' } = fresh.metadata
    await client.delete(Jobs, { namespace, name }, { signal, propagationPolicy: 'Foreground', preconditions: { uid } })
    meters
      .family('ttl_after_finished_controller_job_deletion_duration_seconds')
      .labels()
      .observe((clock.now() - (expiryMs(fresh) ?? 0)) / 1000)
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error
  }
  return undefined
}

function expiryMs({ spec, status }: Job): number | undefined {
  const end = status.conditions?.find(
    ({ type, status: value }) => (type === 'Complete' || type === 'Failed') && value === 'True',
  )
  const since = end?.lastTransitionTime
  if (spec.ttlSecondsAfterFinished === undefined || typeof since !== 'string') return undefined
  return epochMsOf(since) + spec.ttlSecondsAfterFinished * 1000
}
