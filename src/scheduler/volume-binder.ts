/**
 * Claims that wait for their first pod: which volumes they get on a node, or who would make them there, and the writing
 * and waiting that it takes. What is chosen for one pod is assumed for all others at once.
 */
import {
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
  Pods,
  type TopologySelectorTerm,
} from '#apis/core/v1.ts'
import { type CSIStorageCapacity, CSIDrivers, CSIStorageCapacities, StorageClasses } from '#apis/storage/v1.ts'
import { sleep } from '#lib/clock.ts'
import { asSelector } from '#meta/label-selector.ts'
import { type Labels, matchesLabels } from '#meta/labels.ts'
import { objectKey } from '#meta/object.ts'
import { parseQuantity, quantityValue } from '#meta/quantity.ts'
import { boundVolume, isFullyBound, SELECTED_NODE, withAnnotations } from '#model/volume-binding.ts'
import { delayedMatches, isReachable } from '#model/volume-matching.ts'
import { storageClassOf } from '#model/volumes.ts'

import { Assumptions } from './assumptions.ts'
import type { Cluster } from './cluster.ts'
import type { Handle } from './framework.ts'
import type { PodInfo } from './pod-info.ts'

/** What a class has for a provisioner when there is none. */
const NO_PROVISIONER = 'kubernetes.io/no-provisioner'
/** How often it is looked whether everything is bound; sooner when a claim changes. */
const LOOK_EVERY_MS = 1000

export interface Match {
  readonly volume: PersistentVolume
  readonly claim: PersistentVolumeClaim
}

/** What is to be done about the claims of a pod on its node. */
export interface VolumePlan {
  readonly matches: readonly Match[]
  /** Claims that somebody is to make a volume for. */
  readonly provisions: readonly PersistentVolumeClaim[]
}

export type ProvisionVerdict = 'yes' | 'no' | 'no space'

export class VolumeBinder {
  readonly #handle: Handle
  readonly claims: Assumptions<PersistentVolumeClaim>
  readonly volumes: Assumptions<PersistentVolume>
  /** Who waits for a claim, by its key. */
  readonly #waiting = new Map<string, Set<() => void>>()

  constructor(handle: Handle) {
    this.#handle = handle
    const { of } = handle
    this.claims = new Assumptions(of(PersistentVolumeClaims))
    this.volumes = new Assumptions(of(PersistentVolumes))
    of(PersistentVolumes).addIndex('class', (volume) => [storageClassOf(volume)])
    of(CSIStorageCapacities).addIndex('class', ({ storageClassName }) => [storageClassName])
    of(CSIDrivers)
    of(StorageClasses)
    of(PersistentVolumeClaims).listen({
      updated: (claim) => {
        for (const wake of this.#waiting.get(objectKey(claim)) ?? []) wake()
      },
    })
  }

  /** What a claim could get, on whatever node. */
  matchesFor(claim: PersistentVolumeClaim): readonly PersistentVolume[] {
    const volumes = this.#handle.of(PersistentVolumes).by('class', storageClassOf(claim))
    return delayedMatches(
      claim,
      volumes.map((one) => this.volumes.seen(one)),
    )
  }

  /** Whether the claim's class would have a volume made for it that the node can get at. */
  canProvision(claim: PersistentVolumeClaim, { metadata: { labels } }: Node): ProvisionVerdict {
    const { of } = this.#handle
    const found = of(StorageClasses).get(storageClassOf(claim))
    if (found === undefined || found.provisioner === '' || found.provisioner === NO_PROVISIONER) return 'no'
    if (!isAllowed(found.allowedTopologies, labels)) return 'no'
    const { storage } = claim.spec.resources?.requests ?? {}
    if (storage === undefined || of(CSIDrivers).get(found.provisioner)?.spec.storageCapacity !== true) return 'yes'
    const bytes = quantityValue(parseQuantity(storage))
    const pools = of(CSIStorageCapacities).by('class', found.metadata.name ?? '')
    return pools.some((pool) => hasRoom(pool, bytes, labels)) ? 'yes' : 'no space'
  }

  /** From here on everybody reckons with it. */
  assume(plan: VolumePlan, node: string): VolumePlan {
    const { of } = this.#handle
    const matches = plan.matches.map(({ volume, claim }) => {
      const bound = boundVolume(volume, claim)
      const from = of(PersistentVolumes).get(objectKey(volume))
      if (bound !== undefined && from !== undefined) this.volumes.assume(bound, from)
      return { volume: bound ?? volume, claim }
    })
    const provisions = plan.provisions.map((claim) => {
      const told = withAnnotations(claim, { ...claim.metadata.annotations, [SELECTED_NODE]: node })
      const from = of(PersistentVolumeClaims).get(objectKey(claim))
      if (from !== undefined) this.claims.assume(told, from)
      return told
    })
    return { matches, provisions }
  }

  forget({ matches, provisions }: VolumePlan): void {
    for (const { volume } of matches) this.volumes.forget(objectKey(volume))
    for (const claim of provisions) this.claims.forget(objectKey(claim))
  }

  /** Writes what is assumed, and waits until all of it is bound. Throws what goes wrong. */
  async bind(pod: PodInfo, plan: VolumePlan, node: string, { signal, timeoutMs }: BindLimits): Promise<void> {
    const { client, clock } = this.#handle
    const written: Written = { matches: [], provisions: [] }
    for (const { volume, claim } of plan.matches)
      written.matches.push({ volume: await client.update(PersistentVolumes, volume, { signal }), claim })
    for (const claim of plan.provisions)
      written.provisions.push(await client.update(PersistentVolumeClaims, claim, { signal }))
    const endMs = clock.now() + timeoutMs
    const keys = [...plan.matches.map(({ claim }) => claim), ...plan.provisions].map(objectKey)
    try {
      for (let isDone = false; !isDone; isDone = this.#areBound(pod, written, node)) {
        if (clock.now() >= endMs) throw new Error('context deadline exceeded')
        await this.#change(keys, signal)
      }
    } catch (error) {
      throw new Error(`binding volumes: ${(error as Error).message}`, { cause: error })
    }
  }

  /** Resolves when one of the claims changes, or after a while. */
  async #change(keys: readonly string[], signal: AbortSignal): Promise<void> {
    const over = new AbortController()
    const wake = (): void => over.abort()
    for (const key of keys) this.#waiting.set(key, (this.#waiting.get(key) ?? new Set()).add(wake))
    await sleep(this.#handle.clock, LOOK_EVERY_MS, AbortSignal.any([over.signal, signal])).catch(() => undefined)
    for (const key of keys) {
      const waiting = this.#waiting.get(key)
      waiting?.delete(wake)
      if (waiting?.size === 0) this.#waiting.delete(key)
    }
    if (signal.aborted) throw new Error('context canceled')
  }

  /** Throws when it will never be. */
  #areBound(pod: PodInfo, { matches, provisions }: Written, name: string): boolean {
    const { cluster, of } = this.#handle
    const node = cluster.node(name)?.node
    if (node === undefined) throw new Error(`failed to get node "${name}": node "${name}" not found`)
    if (of(Pods).get(pod.key)?.metadata.uid !== pod.uid)
      throw new Error(`pod does not exist any more: pod "${pod.pod.metadata.name}" not found`)
    return (
      matches.every((match) => this.#isMatched(match, node)) &&
      provisions.every((claim) => this.#isProvisioned(claim, node))
    )
  }

  #isMatched({ volume: written, claim }: Match, node: Node): boolean {
    const { of } = this.#handle
    const name = written.metadata.name ?? ''
    const volume = of(PersistentVolumes).get(name)
    if (volume === undefined) throw new Error(`failed to check binding: persistentvolume "${name}" not found`)
    const bound = of(PersistentVolumeClaims).get(objectKey(claim))
    if (bound === undefined)
      throw new Error(`failed to check binding: persistentvolumeclaim "${claim.metadata.name}" not found`)
    if (isOlder(volume, written)) return false
    demandReachable(volume, node)
    if ((volume.spec.claimRef?.uid ?? '') === '') throw new Error(`ClaimRef got reset for pv "${name}"`)
    return isFullyBound(bound)
  }

  #isProvisioned(written: PersistentVolumeClaim, node: Node): boolean {
    const { of } = this.#handle
    const claim = of(PersistentVolumeClaims).get(objectKey(written))
    const { name } = written.metadata
    if (claim === undefined)
      throw new Error(`failed to check provisioning pvc: persistentvolumeclaim "${name}" not found`)
    if (isOlder(claim, written)) return false
    if (claim.metadata.annotations === undefined) throw new Error(`selectedNode annotation reset for PVC "${name}"`)
    if (claim.metadata.annotations[SELECTED_NODE] !== node.metadata.name)
      throw new Error(`provisioning failed for PVC "${name}"`)
    const { volumeName = '' } = claim.spec
    if (volumeName !== '') {
      const volume = of(PersistentVolumes).get(volumeName)
      // It has not been heard of yet.
      if (volume === undefined) return false
      demandReachable(volume, node)
    }
    return isFullyBound(claim)
  }
}

export interface BindLimits {
  readonly signal: AbortSignal
  readonly timeoutMs: number
}

const known = new WeakMap<Cluster, VolumeBinder>()

/** One for all profiles: what one of them has promised a claim, no other has to give. Made when the first asks. */
export function volumeBinderOf(handle: Handle): VolumeBinder {
  const binder = known.get(handle.cluster) ?? new VolumeBinder(handle)
  known.set(handle.cluster, binder)
  return binder
}

interface Written {
  readonly matches: Match[]
  readonly provisions: PersistentVolumeClaim[]
}

function demandReachable(volume: PersistentVolume, node: Node): void {
  if (isReachable(volume, node)) return
  const [from, to] = [volume.metadata.name, node.metadata.name]
  throw new Error(`pv "${from}" node affinity doesn't match node "${to}": no matching NodeSelectorTerms`)
}

function isOlder(heard: PersistentVolume | PersistentVolumeClaim, written: typeof heard): boolean {
  const [one, other] = [heard, written].map(({ metadata }) => BigInt(metadata.resourceVersion ?? '0'))
  return (one ?? 0n) < (other ?? 0n)
}

function isAllowed(topologies: readonly TopologySelectorTerm[] = [], labels: Labels): boolean {
  if (topologies.length === 0) return true
  return topologies.some(
    ({ matchLabelExpressions = [] }) =>
      matchLabelExpressions.length > 0 &&
      matchLabelExpressions.every(({ key, values }) => labels?.[key] !== undefined && values.includes(labels[key])),
  )
}

/** How large a volume can be at most; undefined: nobody knows. */
export function volumeLimit({ maximumVolumeSize, capacity }: CSIStorageCapacity): number | undefined {
  const limit = maximumVolumeSize ?? capacity
  return limit === undefined ? undefined : quantityValue(parseQuantity(limit))
}

function hasRoom(pool: CSIStorageCapacity, bytes: number, labels: Labels): boolean {
  const limit = volumeLimit(pool)
  if (limit === undefined || limit < bytes || pool.nodeTopology === undefined) return false
  return matchesLabels(asSelector(pool.nodeTopology), labels)
}
