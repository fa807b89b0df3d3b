/** Rolls back to the revision in an annotation of old clients. */
import { Deployments, type ReplicaSet } from '#apis/apps/v1.ts'

import { lastRevision, restored, revisionOf, ROLLBACK_TO, sameTemplate, withoutHash } from './annotations.ts'
import type { Rollout } from './rollout.ts'
import { allOf } from './status.ts'

/** Removes the annotation in every case. */
export async function rollBack(rollout: Rollout, wanted: bigint): Promise<void> {
  await rollout.findCurrent()
  await rollout.needCurrent()
  const { deployment, sets } = rollout
  const all = allOf(sets)
  const revision = wanted === 0n ? lastRevision(all) : wanted
  const set = revision === 0n ? undefined : all.find((one) => revisionOf(one) === revision)
  const { name } = deployment.metadata
  if (set === undefined) {
    const message = revision === 0n ? 'Unable to find last revision.' : 'Unable to find the revision to rollback to.'
    recordEvent(rollout, 'Warning', 'DeploymentRollbackRevisionNotFound', message)
    return clear(rollout)
  }
  if (sameTemplate(set.spec.template, deployment.spec.template)) {
    const message = `The rollback revision contains the same template as current deployment "${name}"`
    recordEvent(rollout, 'Warning', 'DeploymentRollbackTemplateUnchanged', message)
    return clear(rollout)
  }
  await clear(rollout, set)
  recordEvent(rollout, 'Normal', 'DeploymentRollback', `Rolled back deployment "${name}" to revision ${revision}`)
}

function recordEvent(
  { context, deployment }: Rollout,
  type: 'Normal' | 'Warning',
  reason: string,
  message: string,
): void {
  context.event(deployment, { type, reason, message })
}

async function clear({ deployment, context: { client, signal } }: Rollout, set?: ReplicaSet): Promise<void> {
  const { [ROLLBACK_TO]: _, ...own } = deployment.metadata.annotations ?? {}
  const annotations = set === undefined ? own : { ...restored(deployment, set) }
  const spec = set === undefined ? deployment.spec : { ...deployment.spec, template: withoutHash(set.spec.template) }
  await client.update(
    Deployments,
    { ...deployment, metadata: { ...deployment.metadata, annotations }, spec },
    { signal },
  )
}
