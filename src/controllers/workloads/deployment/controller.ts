/** Deployment controller: creates a ReplicaSet for each pod template and scales them step by step (`sizes.ts`). */
import { type Deployment, Deployments, type ReplicaSet, ReplicaSets } from '#apis/apps/v1.ts'
import { type Pod, Pods } from '#apis/core/v1.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { asSelector } from '#meta/label-selector.ts'
import { matchesLabels } from '#meta/labels.ts'
import { controllerOf, isBeingDeleted, objectKey, semanticEqual } from '#meta/object.ts'
import { isTerminal } from '#model/pods.ts'
import type { Cache } from '#reconcile/cache.ts'
import { itself, ownedBy, related, rule, EVENTS } from '#reconcile/controller.ts'

import { type Controller, type ControllerContext, defineController } from '../../controller.ts'
import { claim } from '../adoption.ts'
import { byRevision, DESIRED_REPLICAS, numberIn, revisionIn, ROLLBACK_TO } from './annotations.ts'
import { rollBack } from './rollback.ts'
import { attemptsOf, Rollout } from './rollout.ts'
import { byAge, isSaturated, newSetSize, proportional, replicasOf, shrinkOld } from './sizes.ts'
import { allOf, countedStatus, isComplete, nextCheckMs, pausedConditions, rolloutStatus, sameStatus } from './status.ts'

export const deploymentController: Controller = defineController({
  name: 'deployment-controller',
  aliases: ['deployment'],
  maxRetries: 15,
  watches: [
    itself(Deployments),
    ownedBy(Deployments, ReplicaSets),
    related(ReplicaSets, deploymentsThatMightAdopt),
    // Recreate waits until the last old pod is gone.
    related(Pods, deploymentOfPod),
  ],
  rules: [
    rule('extensions apps', 'deployments', 'get list watch update'),
    rule('extensions apps', 'deployments/status deployments/finalizers', 'update'),
    rule('apps extensions', 'replicasets', 'get list watch create update patch delete'),
    rule('', 'pods', 'get list watch update'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const deployment = context.cache.get(Deployments, key)
    if (deployment === undefined) return
    if (semanticEqual(deployment.spec.selector, {})) return refuseAll(deployment, context)
    const sets = await setsOf(deployment, context)
    return sync(new Rollout(deployment, sets, context))
  },
})

function deploymentsThatMightAdopt(set: ReplicaSet, cache: Cache): string[] {
  if (controllerOf(set) !== undefined) return []
  const deployments = cache.inNamespace(Deployments, set.metadata.namespace ?? '')
  return deployments.filter(({ spec }) => matchesLabels(asSelector(spec.selector), set.metadata.labels)).map(objectKey)
}

function deploymentOfPod(pod: Pod, cache: Cache): string[] {
  const { namespace = '' } = pod.metadata
  const owner = controllerOf(pod)
  const set = owner?.kind === 'ReplicaSet' ? cache.get(ReplicaSets, `${namespace}/${owner.name}`) : undefined
  const name = set === undefined ? undefined : controllerOf(set)?.name
  if (name === undefined) return []
  const deployment = cache.get(Deployments, `${namespace}/${name}`)
  return deployment?.spec.strategy.type === 'Recreate' ? [objectKey(deployment)] : []
}

async function refuseAll(deployment: Deployment, { event, client, signal }: ControllerContext): Promise<void> {
  const message = 'This deployment is selecting all pods. A non-empty selector is required.'
  event(deployment, { type: 'Warning', reason: 'SelectingAll', message })
  const { generation = 0 } = deployment.metadata
  if ((deployment.status.observedGeneration ?? 0) >= generation) return
  const status = { ...deployment.status, observedGeneration: generation }
  await client.updateStatus(Deployments, { ...deployment, status }, { signal })
}

async function setsOf(deployment: Deployment, context: ControllerContext): Promise<ReplicaSet[]> {
  const { cache } = context
  const selector = asSelector(deployment.spec.selector)
  const candidates = [
    ...cache.ownedBy(ReplicaSets, deployment),
    ...cache.orphansIn(ReplicaSets, deployment.metadata.namespace ?? ''),
  ]
  const matches = ({ metadata }: ReplicaSet): boolean => matchesLabels(selector, metadata.labels)
  const claimed = await claim(
    context,
    { owner: deployment, ownerKind: Deployments, kind: ReplicaSets, matches },
    candidates,
  )
  return [...claimed, ...(await attemptsOf(context).unseen(deployment, context))]
}

async function sync(rollout: Rollout): Promise<Requeue | void> {
  const { deployment, context } = rollout
  if (isBeingDeleted(deployment)) {
    await rollout.findCurrent()
    return writeCounts(rollout)
  }
  const conditions = pausedConditions(deployment, context.clock.now())
  if (conditions !== undefined) await rollout.writeStatus({ ...rollout.deployment.status, conditions })
  if (deployment.spec.paused === true) {
    await rollout.findCurrent()
    return scale(rollout)
  }
  const rollbackTo = revisionIn(deployment, ROLLBACK_TO)
  if (rollbackTo !== undefined) return rollBack(rollout, rollbackTo)
  await rollout.findCurrent()
  if (wasScaled(rollout)) return scale(rollout)
  return deployment.spec.strategy.type === 'Recreate' ? recreate(rollout) : roll(rollout)
}

/** `replicas` changed after the ReplicaSets were scaled. */
function wasScaled({ deployment, sets }: Rollout): boolean {
  const wanted = replicasOf(deployment)
  return allOf(sets).some((set) => {
    const desired = replicasOf(set) > 0 ? numberIn(set, DESIRED_REPLICAS) : undefined
    return desired !== undefined && desired !== wanted
  })
}

async function scale(rollout: Rollout): Promise<void> {
  await resizeAll(rollout)
  const { deployment } = rollout
  if (deployment.spec.paused === true && revisionIn(deployment, ROLLBACK_TO) === undefined) await cleanUp(rollout)
  return writeCounts(rollout)
}

async function resizeAll(rollout: Rollout): Promise<void> {
  const { deployment, sets } = rollout
  const active = allOf(sets).filter((set) => replicasOf(set) > 0)
  if (active.length <= 1) {
    const only = active[0] ?? sets.current ?? byAge(sets.olds).at(-1)
    if (only !== undefined) await rollout.resize({ set: only, size: replicasOf(deployment) })
    return
  }
  if (isSaturated(deployment, sets.current)) {
    for (const set of sets.olds) if (replicasOf(set) > 0) await rollout.resize({ set, size: 0 })
    return
  }
  if (deployment.spec.strategy.type !== 'RollingUpdate') return
  for (const resize of proportional(deployment, allOf(sets))) await rollout.resize(resize, true)
}

async function roll(rollout: Rollout): Promise<Requeue | void> {
  const current = await rollout.needCurrent()
  const { deployment, sets } = rollout
  const [wanted, size] = [replicasOf(deployment), replicasOf(current)]
  const next = size > wanted ? wanted : newSetSize(deployment, sets.olds, size)
  if (await rollout.resize({ set: current, size: next })) return writeProgress(rollout)
  const resizes = shrinkOld(deployment, sets.olds, current)
  for (const resize of resizes) await rollout.resize(resize)
  if (resizes.length === 0 && isComplete(deployment, deployment.status)) await cleanUp(rollout)
  return writeProgress(rollout)
}

async function recreate(rollout: Rollout): Promise<Requeue | void> {
  const running = rollout.sets.olds.filter((set) => replicasOf(set) > 0)
  for (const set of running) await rollout.resize({ set, size: 0 })
  if (running.length > 0 || oldPodsRun(rollout)) return writeProgress(rollout)
  const current = await rollout.needCurrent()
  const { deployment } = rollout
  await rollout.resize({ set: current, size: replicasOf(deployment) })
  if (isComplete(deployment, deployment.status)) await cleanUp(rollout)
  return writeProgress(rollout)
}

/** Includes terminating pods that no ReplicaSet counts. */
function oldPodsRun({ sets, context }: Rollout): boolean {
  if (sets.olds.some(({ status }) => status.replicas > 0)) return true
  return sets.olds.some((set) => context.cache.ownedBy(Pods, set).some((pod) => !isTerminal(pod)))
}

/** Deletes the oldest empty ReplicaSets beyond the revision history limit. */
async function cleanUp({ deployment, sets, context: { client, signal } }: Rollout): Promise<void> {
  const limit = deployment.spec.revisionHistoryLimit
  if (limit === undefined || limit === 2 ** 31 - 1) return
  const kept = sets.olds.filter((set) => !isBeingDeleted(set))
  for (const set of kept.toSorted(byRevision).slice(0, Math.max(0, kept.length - limit))) {
    const { metadata, status } = set
    const isObserved = (metadata.generation ?? 0) <= (status.observedGeneration ?? 0)
    if (status.replicas !== 0 || replicasOf(set) !== 0 || !isObserved) continue
    await client.delete(ReplicaSets, { namespace: metadata.namespace, name: metadata.name ?? '' }, { signal })
  }
}

async function writeCounts(rollout: Rollout): Promise<void> {
  const { deployment, sets, context } = rollout
  const status = countedStatus(deployment, sets, context.clock.now())
  if (!sameStatus(deployment.status, status)) await rollout.writeStatus(status)
}

async function writeProgress(rollout: Rollout): Promise<Requeue | void> {
  const { deployment, sets, context } = rollout
  const nowMs = context.clock.now()
  const status = rolloutStatus(deployment, sets, nowMs)
  if (!sameStatus(deployment.status, status)) return rollout.writeStatus(status)
  const requeueAfterMs = nextCheckMs(deployment, status, nowMs)
  if (requeueAfterMs !== undefined) return { requeueAfterMs }
}
