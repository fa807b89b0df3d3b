/** VolumeBinding: rejects nodes that cannot reach the pod's bound volumes or provide the unbound ones. */
import {
  type Node,
  Nodes,
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
  type Pod,
  type Volume,
} from '#apis/core/v1.ts'
import {
  CSIDrivers,
  type CSIDriver,
  CSINodes,
  CSIStorageCapacities,
  type CSIStorageCapacity,
  type StorageClass,
  StorageClasses,
} from '#apis/storage/v1.ts'
import { isBeingDeleted, keyOf, type KubeObject, objectKey, semanticEqual } from '#meta/object.ts'
import { compareQuantities } from '#meta/quantity.ts'
import { isFullyBound, SELECTED_NODE } from '#model/volumes/binding.ts'
import { isReachable, requestOf } from '#model/volumes/matching.ts'
import { claimKeysOf, claimNameOf, notMadeForPod, storageClassOf } from '#model/volumes/volumes.ts'

import type { NodeInfo } from '../cluster/node-info.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import {
  type ClusterEventWithHint,
  definePlugin,
  failed,
  type Handle,
  type PluginFactory,
  type PluginState,
  type Refusal,
  unresolvable,
  type Verdict,
} from '../framework/framework.ts'
import { type VolumeBinder, volumeBinderOf, volumeLimit, type VolumePlan } from '../volume-binder.ts'

const OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
const NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
const NO_SPACE = 'node(s) did not have enough free storage'
const NO_VOLUME = 'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)'

export interface VolumeBindingArgs {
  readonly bindTimeoutSeconds?: number
}

export const volumeBinding: PluginFactory = definePlugin({
  name: 'VolumeBinding',
  create(handle: Handle, { bindTimeoutSeconds = 600 }: VolumeBindingArgs) {
    const binder = volumeBinderOf(handle)
    const timeoutMs = bindTimeoutSeconds * 1000
    return {
      eventsToRegister: WAKES,
      preFilter(pod) {
        const found = claimsOf(pod.pod, (key) => binder.claims.get(key))
        if (!Array.isArray(found)) return found
        if (found.length === 0) return undefined
        const unbound = found.filter((claim) => !isFullyBound(claim))
        const isDelayed = (claim: PersistentVolumeClaim): boolean =>
          (claim.spec.volumeName ?? '') === '' &&
          handle.of(StorageClasses).get(storageClassOf(claim))?.volumeBindingMode === 'WaitForFirstConsumer'
        if (!unbound.every(isDelayed)) return unresolvable('pod has unbound immediate PersistentVolumeClaims')
        const bound = found.filter(isFullyBound).map(({ spec }) => binder.volumes.get(spec.volumeName ?? ''))
        const isPlain =
          unbound.length === 0 && bound.every((one) => one !== undefined && one.spec.nodeAffinity === undefined)
        return isPlain ? undefined : new PodVolumes({ binder, timeoutMs, pod }, bound, unbound)
      },
    }
  },
})

/** All claims, or why the pod must wait. */
function claimsOf(
  pod: Pod,
  get: (key: string) => PersistentVolumeClaim | undefined,
): PersistentVolumeClaim[] | Refusal {
  const claims: PersistentVolumeClaim[] = []
  for (const volume of pod.spec.volumes ?? []) {
    const name = claimNameOf(pod, volume)
    if (name === undefined) continue
    const claim = get(keyOf(pod.metadata.namespace, name))
    const complaint = complaintOf(pod, volume, name, claim)
    if (complaint !== undefined) return unresolvable(complaint)
    if (claim !== undefined) claims.push(claim)
  }
  return claims
}

function complaintOf(
  pod: Pod,
  { ephemeral }: Volume,
  name: string,
  claim: PersistentVolumeClaim | undefined,
): string | undefined {
  const named = `persistentvolumeclaim ${JSON.stringify(name)}`
  if (claim === undefined)
    return ephemeral === undefined
      ? `${named} not found`
      : `waiting for ephemeral volume controller to create the ${named}`
  if (claim.status.phase === 'Lost')
    return `${named} bound to non-existent persistentvolume ${JSON.stringify(claim.spec.volumeName ?? '')}`
  if (isBeingDeleted(claim)) return `${named} is being deleted`
  return ephemeral === undefined ? undefined : notMadeForPod(pod, claim)
}

interface Parts {
  readonly binder: VolumeBinder
  readonly timeoutMs: number
  readonly pod: PodInfo
}

/** The bound claims of a pod, and those whose volumes depend on the node. */
class PodVolumes implements PluginState {
  readonly #parts: Parts
  readonly #binder: VolumeBinder
  /** Undefined: the volume was deleted. */
  readonly #bound: readonly (PersistentVolume | undefined)[]
  /** The smallest first, so that each takes the smallest fitting volume. */
  readonly #unbound: readonly PersistentVolumeClaim[]
  readonly #matches = new Map<PersistentVolumeClaim, readonly PersistentVolume[]>()
  #plan: VolumePlan | undefined

  constructor(
    parts: Parts,
    bound: readonly (PersistentVolume | undefined)[],
    unbound: readonly PersistentVolumeClaim[],
  ) {
    this.#parts = parts
    this.#binder = parts.binder
    this.#bound = bound
    this.#unbound = unbound.toSorted((a, b) => compareQuantities(requestOf(a), requestOf(b)))
  }

  filter({ node }: NodeInfo): Verdict {
    if (node === undefined) return undefined
    const first = this.#bound.find((one) => one === undefined || !isReachable(one, node))
    const isGone = first === undefined && this.#bound.includes(undefined)
    const plan = this.#planFor(node)
    const reasons = [
      ...(first === undefined ? [] : [OUT_OF_REACH]),
      ...(typeof plan === 'string' ? [plan] : []),
      ...(isGone ? [NO_VOLUME] : []),
    ]
    return reasons.length === 0 ? undefined : unresolvable(...reasons)
  }

  reserve({ node, name }: NodeInfo): Verdict {
    if (this.#unbound.length === 0 || node === undefined) return undefined
    const plan = this.#planFor(node)
    if (typeof plan === 'string') return failed(plan)
    this.#plan = this.#binder.assume(plan, name)
    return undefined
  }

  unreserve(): void {
    if (this.#plan !== undefined) this.#binder.forget(this.#plan)
    this.#plan = undefined
  }

  willPreBind(): boolean {
    return this.#plan !== undefined
  }

  async preBind({ name }: NodeInfo, signal: AbortSignal): Promise<Verdict> {
    if (this.#plan === undefined) return undefined
    try {
      const { pod, timeoutMs } = this.#parts
      await this.#binder.bind(pod, this.#plan, name, { signal, timeoutMs })
      return undefined
    } catch (error) {
      return failed((error as Error).message)
    }
  }

  /** The plan, or why there is none. */
  #planFor(node: Node): VolumePlan | string {
    const isElsewhere = ({ metadata }: PersistentVolumeClaim): boolean => {
      const selected = metadata.annotations?.[SELECTED_NODE]
      return selected !== undefined && selected !== node.metadata.name
    }
    if (this.#unbound.some(isElsewhere)) return NOTHING_TO_BIND
    const taken = new Set<PersistentVolume>()
    const matches: { volume: PersistentVolume; claim: PersistentVolumeClaim }[] = []
    const provisions: PersistentVolumeClaim[] = []
    for (const claim of this.#unbound) {
      const volume = this.#matchesOf(claim).find((one) => !taken.has(one) && isReachable(one, node))
      if (volume === undefined) provisions.push(claim)
      else {
        taken.add(volume)
        matches.push({ volume, claim })
      }
    }
    for (const claim of provisions) {
      const verdict = this.#binder.canProvision(claim, node)
      if (verdict !== 'yes') return verdict === 'no' ? NOTHING_TO_BIND : NO_SPACE
    }
    return { matches, provisions }
  }

  /** Empty if a provisioner is already creating the volume on the selected node. */
  #matchesOf(claim: PersistentVolumeClaim): readonly PersistentVolume[] {
    const known = this.#matches.get(claim)
    if (known !== undefined) return known
    const isAtIt = claim.metadata.annotations?.[SELECTED_NODE] !== undefined
    const found = isAtIt ? [] : this.#binder.matchesFor(claim)
    this.#matches.set(claim, found)
    return found
  }
}

function isClaimOf(pod: Pod, claim: KubeObject | undefined): boolean {
  return claim !== undefined && claimKeysOf(pod).includes(objectKey(claim))
}

const MIGRATED = 'storage.alpha.kubernetes.io/migrated-plugins'

const WAKES: readonly ClusterEventWithHint[] = [
  {
    resource: StorageClasses,
    actions: ['add', 'update'],
    queueingHint: (_, now, old) =>
      old === undefined ||
      !semanticEqual((now as StorageClass).allowedTopologies, (old as StorageClass).allowedTopologies),
  },
  { resource: PersistentVolumeClaims, actions: ['add', 'update'], queueingHint: isClaimOf },
  { resource: PersistentVolumes, actions: ['add', 'update'] },
  { resource: Nodes, actions: ['add', 'labels'] },
  {
    resource: CSINodes,
    actions: ['add', 'update'],
    queueingHint: (_, now, old) =>
      old === undefined || now?.metadata.annotations?.[MIGRATED] !== old.metadata.annotations?.[MIGRATED],
  },
  {
    resource: CSIDrivers,
    actions: ['update'],
    // The driver no longer reports capacity, so it no longer limits the nodes.
    queueingHint: (_, now, old) =>
      (old as CSIDriver).spec.storageCapacity === true && (now as CSIDriver).spec.storageCapacity !== true,
  },
  {
    resource: CSIStorageCapacities,
    actions: ['add', 'update'],
    queueingHint: (_, now, old) =>
      old === undefined ||
      (volumeLimit(now as CSIStorageCapacity) ?? -1) > (volumeLimit(old as CSIStorageCapacity) ?? -1),
  },
]
