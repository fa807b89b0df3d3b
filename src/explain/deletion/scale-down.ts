/** A pod that its ReplicaSet or ReplicationController removed: repeats the ranking, and follows the number of replicas upwards. */
import { Deployments, type Deployment, ReplicaSets } from '#apis/apps/v1.ts'
import { type Pod, Pods, ReplicationControllers } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { decidingCriterion, planReplicas } from '#controllers/workloads/replicas.ts'
import { controllerOf, isControlledBy, type KubeObject, semanticEqual } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'
import { isTerminal } from '#model/pods.ts'

import { citeOf, fieldAt } from '../citation.ts'
import { nameOf, type Step } from '../explanation.ts'
import { HIDDEN, type Reader, UNKEPT } from '../reader.ts'
import { actorOf, changeStep, subjectOf } from './actor.ts'
import type { DeletionCase, DeletionCause } from './case.ts'
import { lastChange, type Transition, wasBetween } from './changes.ts'

type ReplicaSetLike = KubeObject & { readonly spec: { readonly replicas?: number } }

export async function whyScaledDown(one: DeletionCase): Promise<DeletionCause> {
  const { object, kind, decision, reader } = one
  const owner = controllerOf(object)
  const setKind: Kind = owner?.kind === 'ReplicaSet' ? ReplicaSets : ReplicationControllers
  const first = changeStep(kind, decision, `deleted ${subjectOf(one)}, because its set had too many pods`)
  const where = { namespace: object.metadata.namespace ?? '', name: owner?.name ?? '' }
  const above = await whyFewerReplicas(setKind, where, decision.resourceVersion, reader)
  const ranking = await rankingStep(one, setKind)
  return {
    because: `${owner?.kind} ${owner?.name} had more pods than replicas${above === undefined ? '' : `: ${above.because}`}`,
    steps: [first, ...(ranking === undefined ? [] : [ranking]), ...(above?.steps ?? [])],
  }
}

/** Which criterion chose this pod; undefined: the repetition does not choose it, or objects cannot be read. */
async function rankingStep({ object, decision, reader }: DeletionCase, setKind: Kind): Promise<Step | undefined> {
  const before = reader.at(`rv:${Number(decision.resourceVersion) - 1}`)
  const { namespace = '' } = object.metadata
  const owner = controllerOf(object)
  const [set, pods] = await Promise.all([
    before.get(setKind as Kind<ReplicaSetLike>, { namespace, name: owner?.name ?? '' }),
    before.list(Pods, { namespace }),
  ])
  if (set === HIDDEN || set === undefined || pods === HIDDEN) return undefined
  const active = pods.filter((pod) => isControlledBy(pod, set) && isActive(pod))
  const related = await familyOf(set, pods, before)
  const nowMs = decision.time === undefined ? reader.nowMs : epochMsOf(decision.time)
  const { surplus } = planReplicas(set.spec.replicas ?? 1, active, related, nowMs)
  const victim = surplus.find(({ metadata }) => metadata.uid === object.metadata.uid)
  const kept = active.filter((pod) => !surplus.includes(pod))
  if (victim === undefined || kept.length === 0) return undefined
  const deciding = kept.map((other) => decidingCriterion(victim, other, related, nowMs))
  const [criterion] = deciding
  if (criterion === undefined || deciding.some((other) => other?.text !== criterion.text)) return undefined
  const evidence = criterion.fieldPath === undefined ? [] : citeOf({ kind: Pods, object: victim }, criterion.fieldPath)
  const { time, resourceVersion } = decision
  return {
    ...(time !== undefined && { at: time }),
    revision: resourceVersion,
    actor: actorOf(decision),
    did: `chose it among ${active.length} pods, because ${criterion.text}`,
    object: `pods/${nameOf(object)}`,
    because: [],
    evidence,
    certainty: 'recomputed',
  }
}

function isActive(pod: Pod): boolean {
  return !isTerminal(pod) && pod.metadata.deletionTimestamp === undefined
}

/** The active pods of all ReplicaSets of the same Deployment. */
async function familyOf(set: KubeObject, pods: readonly Pod[], reader: Reader): Promise<readonly Pod[]> {
  const owner = controllerOf(set)
  const sets = owner === undefined ? [] : await reader.list(ReplicaSets, { namespace: set.metadata.namespace ?? '' })
  if (sets === HIDDEN) return []
  const family = [set, ...sets.filter((other) => controllerOf(other)?.uid === owner?.uid)]
  return pods.filter((pod) => isActive(pod) && family.some((other) => isControlledBy(pod, other)))
}

interface Above {
  readonly because: string
  readonly steps: readonly Step[]
}

/** The last change of `spec.replicas`, and why a Deployment made it. */
async function whyFewerReplicas(
  kind: Kind,
  where: { readonly namespace: string; readonly name: string },
  until: string,
  reader: Reader,
): Promise<Above | undefined> {
  const changes = await reader.changes(kind, where)
  if (changes === HIDDEN || changes === UNKEPT) return undefined
  const change = lastChange(changes.items, until, ({ before, object }) => {
    const [old, now] = [replicasIn(before), replicasIn(object)]
    return old !== undefined && now !== undefined && now < old
  })
  // If the set had its number of pods in the meantime, the pod was too many for another reason.
  if (change === undefined || wasBetween(changes.items, [change.resourceVersion, until], hasItsPods)) return undefined
  const did = `set spec.replicas of ${kind.kind} ${where.name} from ${replicasIn(change.before)} to ${replicasIn(change.object)}`
  const step = changeStep(kind, change, did, citeOf({ kind, object: change.object }, 'spec.replicas'))
  const because = `${actorOf(change)} ${did}`
  const owner = controllerOf(change.object)
  if (owner?.kind !== 'Deployment' || actorOf(change) !== 'deployment-controller') return { because, steps: [step] }
  const above = await whyDeploymentChanged({ ...where, name: owner.name }, change.resourceVersion, reader)
  return above === undefined ? { because, steps: [step] } : { because: above.because, steps: [step, ...above.steps] }
}

interface Counted extends KubeObject {
  readonly spec?: { readonly replicas?: number }
  readonly status?: {
    readonly replicas?: number
    readonly updatedReplicas?: number
    readonly observedGeneration?: number
  }
}

/** Its controller has seen the spec, and no pod is missing or too many. */
function hasItsPods({ metadata, spec, status }: Counted): boolean {
  const { replicas = 1 } = spec ?? {}
  const { replicas: counted = 0, updatedReplicas = counted, observedGeneration = 0 } = status ?? {}
  return observedGeneration >= (metadata.generation ?? 0) && counted === replicas && updatedReplicas === replicas
}

function replicasIn(object: KubeObject | undefined): number | undefined {
  const replicas = fieldAt(object, 'spec.replicas')
  return typeof replicas === 'number' ? replicas : undefined
}

async function whyDeploymentChanged(
  where: { readonly namespace: string; readonly name: string },
  until: string,
  reader: Reader,
): Promise<Above | undefined> {
  const changes = await reader.changes(Deployments, where)
  if (changes === HIDDEN || changes === UNKEPT) return undefined
  const change = lastChange(changes.items, until, ({ before, object, type }) => {
    const [old, now] = [before, object] as (Deployment | undefined)[]
    return type === 'MODIFIED' && old !== undefined && !semanticEqual(old.spec, now?.spec)
  })
  // A Deployment that was complete in the meantime had another reason, such as a ReplicaSet that a user scaled.
  if (change === undefined || wasBetween(changes.items, [change.resourceVersion, until], hasItsPods)) return undefined
  const did = deploymentText(change, where.name)
  const fields = ['spec.replicas', 'spec.template'].filter(
    (path) => !semanticEqual(fieldAt(change.before, path), fieldAt(change.object, path)),
  )
  const step = changeStep(Deployments, change, did, citeOf({ kind: Deployments, object: change.object }, ...fields))
  return { because: `${actorOf(change)} ${did}`, steps: [step] }
}

function deploymentText({ before, object }: Transition, name: string): string {
  const [old, now] = [before, object] as [Deployment, Deployment]
  if (old.spec.replicas !== now.spec.replicas)
    return `set spec.replicas of Deployment ${name} from ${old.spec.replicas} to ${now.spec.replicas}`
  const images = now.spec.template.spec?.containers.flatMap(({ name: container, image }) => {
    const earlier = old.spec.template.spec?.containers.find((one) => one.name === container)?.image
    return earlier === image ? [] : [`${earlier ?? 'none'} to ${image}`]
  })
  if (images !== undefined && images.length > 0)
    return `changed the image of Deployment ${name} from ${images.join(', ')}`
  return `changed the ${semanticEqual(old.spec.template, now.spec.template) ? 'spec' : 'pod template'} of Deployment ${name}`
}
