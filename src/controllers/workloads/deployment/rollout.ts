/** The state of one reconcile of a Deployment: its latest objects, and the writes that it can make. */
import { type Deployment, type DeploymentStatus, Deployments, type ReplicaSet, ReplicaSets } from '#apis/apps/v1.ts'
import { controllerRef, isControlledBy, keyOf, semanticEqual } from '#meta/object.ts'
import { isAlreadyExists, isNamespaceTerminating, isNotFound } from '#meta/status.ts'
import { templateHash } from '#model/template-hash.ts'

import { perRun } from '../../controller.ts'
import { type ControllerContext } from '../../controller.ts'
import { messageOf } from '../../pod-creation.ts'
import { maxRevision, REVISION, revised, sameTemplate, TEMPLATE_HASH, withSizes } from './annotations.ts'
import { byAge, newSetSize, type Resize, replicasOf, tolerances } from './sizes.ts'
import { hasDeadline, progressing, type Sets, withCondition } from './status.ts'

/** The maximum length of a name with its hash. */
const MAX_NAME = 253

/** By Deployment: ReplicaSets that were or may have been created and that the cache does not show yet. */
class Attempts {
  readonly #names = new Map<string, Set<string>>()

  note(deployment: Deployment, { metadata: { name = '' } }: ReplicaSet): void {
    const { uid = '' } = deployment.metadata
    this.#names.set(uid, new Set([...(this.#names.get(uid) ?? []), name]))
  }

  /** Reads those that exist from the server, so that their pods are counted. */
  async unseen(deployment: Deployment, { cache, client, signal }: ControllerContext): Promise<ReplicaSet[]> {
    const { uid = '', namespace } = deployment.metadata
    const found: ReplicaSet[] = []
    for (const name of this.#names.get(uid) ?? []) {
      if (cache.get(ReplicaSets, keyOf(namespace, name)) !== undefined) continue
      const set = await client.get(ReplicaSets, { namespace, name }, { signal }).catch((error: unknown) => {
        if (!isNotFound(error)) throw error
      })
      if (set !== undefined && isControlledBy(set, deployment)) found.push(set)
    }
    if (found.length === 0) this.#names.delete(uid)
    return found
  }
}

export const attemptsOf: (context: ControllerContext) => Attempts = perRun(() => new Attempts())

export class Rollout {
  readonly context: ControllerContext
  /** As last written. */
  deployment: Deployment
  sets: Sets

  constructor(deployment: Deployment, sets: readonly ReplicaSet[], context: ControllerContext) {
    this.context = context
    this.deployment = deployment
    // The oldest of several with the same template.
    const current = byAge(sets).find(({ spec }) => sameTemplate(spec.template, deployment.spec.template))
    this.sets = { current, olds: sets.filter((set) => set !== current) }
  }

  async writeStatus(status: DeploymentStatus, annotations?: Record<string, string>): Promise<void> {
    const { client, signal } = this.context
    const metadata = { ...this.deployment.metadata, ...(annotations !== undefined && { annotations }) }
    this.deployment = await client.updateStatus(Deployments, { ...this.deployment, metadata, status }, { signal })
  }

  /** Sets the highest revision on the current ReplicaSet, if it exists. */
  async findCurrent(): Promise<void> {
    const { current, olds } = this.sets
    if (current === undefined) return
    const before = current.metadata.annotations ?? {}
    const annotations = revised(this.deployment, before, maxRevision(olds) + 1n)
    const { minReadySeconds = 0 } = this.deployment.spec
    if (!semanticEqual(before, annotations) || (current.spec.minReadySeconds ?? 0) !== minReadySeconds) {
      const metadata = { ...current.metadata, annotations: { ...annotations } }
      this.#replace(current, await this.#update({ ...current, metadata, spec: { ...current.spec, minReadySeconds } }))
    }
    await this.#noteRevision(annotations[REVISION] ?? '', 'FoundNewReplicaSet', `Found new replica set`, current)
  }

  /** Returns the current ReplicaSet; creates it if needed. */
  async needCurrent(): Promise<ReplicaSet> {
    return this.sets.current ?? this.#create()
  }

  /** Returns whether its size changed. `force` also updates the size annotations. */
  async resize({ set, size }: Resize, force = false): Promise<boolean> {
    const known = this.#latest(set)
    const before = replicasOf(known)
    if (before === size && !force) return false
    const annotations = known.metadata.annotations ?? {}
    const noted = withSizes(annotations, replicasOf(this.deployment), tolerances(this.deployment).surge)
    if (before === size && semanticEqual(annotations, noted)) return false
    const metadata = { ...known.metadata, annotations: { ...noted } }
    const updated = await this.#update({ ...known, metadata, spec: { ...known.spec, replicas: size } })
    this.#replace(known, updated)
    if (before !== size) this.#recordScaled(updated, before, size)
    return before !== size
  }

  #recordScaled({ metadata: { name } }: ReplicaSet, before: number, size: number): void {
    const direction = before < size ? 'up' : 'down'
    const message = `Scaled ${direction} replica set ${name} from ${before} to ${size}`
    this.context.event(this.deployment, { type: 'Normal', reason: 'ScalingReplicaSet', message })
  }

  async #create(): Promise<ReplicaSet> {
    const { client, signal } = this.context
    const revision = maxRevision(this.sets.olds) + 1n
    const draft = this.#draft(revision)
    attemptsOf(this.context).note(this.deployment, draft)
    const made = await this.#claimName(draft, client.create(ReplicaSets, draft, { signal }))
    this.sets = { current: made, olds: this.sets.olds }
    const size = replicasOf(draft)
    const isNew = this.#isFresh
    if (isNew && size > 0) this.#recordScaled(made, 0, size)
    await this.#noteRevision(String(revision), isNew ? 'NewReplicaSetCreated' : '', 'Created new replica set', made)
    return made
  }

  /** False if the ReplicaSet was found by its name instead of created. */
  #isFresh = true

  #draft(revision: bigint): ReplicaSet {
    const { deployment } = this
    const { metadata, spec } = deployment
    const hash = templateHash(spec.template, deployment.status.collisionCount)
    const labels = { ...spec.template.metadata?.labels, [TEMPLATE_HASH]: hash }
    const replicas = newSetSize(deployment, this.sets.olds, 0)
    const annotations = withSizes(
      revised(deployment, {}, revision),
      replicasOf(deployment),
      tolerances(deployment).surge,
    )
    return {
      metadata: {
        name: `${(metadata.name ?? '').slice(0, MAX_NAME - hash.length - 1)}-${hash}`,
        namespace: metadata.namespace ?? '',
        labels,
        annotations: { ...annotations },
        ownerReferences: [controllerRef(deployment, Deployments)],
      },
      spec: {
        replicas,
        minReadySeconds: spec.minReadySeconds ?? 0,
        selector: { ...spec.selector, matchLabels: { ...spec.selector.matchLabels, [TEMPLATE_HASH]: hash } },
        template: { ...spec.template, metadata: { ...spec.template.metadata, labels } },
      },
      status: { replicas: 0 },
    }
  }

  /** Handles an existing name: our ReplicaSet that the cache does not show yet, or a hash collision. */
  async #claimName(draft: ReplicaSet, creating: Promise<ReplicaSet>): Promise<ReplicaSet> {
    try {
      return await creating
    } catch (error) {
      if (isAlreadyExists(error)) return this.#takeExisting(draft, error)
      if (!isNamespaceTerminating(error)) await this.#recordFailed(draft, error)
      throw error
    }
  }

  async #takeExisting({ metadata }: ReplicaSet, cause: unknown): Promise<ReplicaSet> {
    const { client, signal } = this.context
    const found = await client.get(
      ReplicaSets,
      { namespace: metadata.namespace, name: metadata.name ?? '' },
      { signal },
    )
    const { deployment } = this
    if (isControlledBy(found, deployment) && sameTemplate(found.spec.template, deployment.spec.template)) {
      this.#isFresh = false
      return found
    }
    await this.writeStatus({ ...deployment.status, collisionCount: (deployment.status.collisionCount ?? 0) + 1 })
    throw cause
  }

  async #recordFailed({ metadata: { name } }: ReplicaSet, error: unknown): Promise<void> {
    const reason = 'ReplicaSetCreateError'
    const message = `Failed to create new replica set "${name}": ${messageOf(error)}`
    const { deployment, context } = this
    context.event(deployment, { type: 'Warning', reason, message })
    if (!hasDeadline(deployment)) return
    const condition = { type: 'Progressing', status: 'False', reason, message }
    const conditions = withCondition(deployment.status.conditions, condition, context.clock.now())
    // The first error is reported.
    await this.writeStatus({ ...deployment.status, conditions }).catch(() => undefined)
  }

  /** Writes the revision to the Deployment and sets its Progressing condition. */
  async #noteRevision(
    revision: string,
    reason: string,
    text: string,
    { metadata: { name } }: ReplicaSet,
  ): Promise<void> {
    const { metadata, status } = this.deployment
    const annotations = { ...metadata.annotations, [REVISION]: revision }
    const isReported = reason === '' || (reason === 'FoundNewReplicaSet' && progressing(this.deployment) !== undefined)
    const shouldReport = hasDeadline(this.deployment) && !isReported
    if (!shouldReport && metadata.annotations?.[REVISION] === revision) return
    const condition = { type: 'Progressing', status: 'True', reason, message: `${text} "${name}"` }
    const conditions = shouldReport
      ? withCondition(status.conditions, condition, this.context.clock.now())
      : status.conditions
    await this.writeStatus({ ...status, ...(conditions !== undefined && { conditions }) }, annotations)
  }

  async #update(set: ReplicaSet): Promise<ReplicaSet> {
    const { client, signal } = this.context
    return client.update(ReplicaSets, set, { signal })
  }

  #latest(set: ReplicaSet): ReplicaSet {
    const { current, olds } = this.sets
    const isSame = (one: ReplicaSet): boolean => one.metadata.uid === set.metadata.uid
    if (current !== undefined && isSame(current)) return current
    return olds.find(isSame) ?? set
  }

  #replace(set: ReplicaSet, updated: ReplicaSet): void {
    const { current, olds } = this.sets
    if (set === current) this.sets = { current: updated, olds }
    else this.sets = { current, olds: olds.map((one) => (one === set ? updated : one)) }
  }
}
