/**
 * Binds claims that wait for their first consumer: matches volumes or selects a node for provisioning, writes the
 * claims and waits for their binding. Decisions about other pods take a choice into account at once.
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
import { boundVolume, isFullyBound, SELECTED_NODE, withAnnotations } from '#model/volumes/binding.ts'
import { delayedMatches, isReachable } from '#model/volumes/matching.ts'
import { storageClassOf } from '#model/volumes/volumes.ts'

import { Assumptions } from './cluster/assumptions.ts'
import type { Cluster } from './cluster/cluster.ts'
import type { PodInfo } from './cluster/pod-info.ts'
import type { Handle } from './framework/framework.ts'

/** The provisioner name of classes without one. */
const NO_PROVISIONER = 'kubernetes.io/no-provisioner'
/** The poll interval for bound claims; a claim event ends the wait earlier. */
const LOOK_EVERY_MS = 1000

export interface Match {
  readonly volume: PersistentVolume
  readonly claim: PersistentVolumeClaim
}

/** The planned bindings of a pod on its node. */
export interface VolumePlan {
  readonly matches: readonly Match[]
  /** Claims that need a provisioned volume. */
  readonly provisions: readonly PersistentVolumeClaim[]
}

export type ProvisionVerdict = 'yes' | 'no' | 'no space'

export class VolumeBinder {
  readonly #handle: Handle
  readonly claims: Assumptions<PersistentVolumeClaim>
  readonly volumes: Assumptions<PersistentVolume>
  /** Waiters by claim key. */
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

  /** Volumes that match the claim on any node. */
  matchesFor(claim: PersistentVolumeClaim): readonly PersistentVolume[] {
    const volumes = this.#handle.of(PersistentVolumes).by('class', storageClassOf(claim))
    return delayedMatches(
      claim,
      volumes.map((one) => this.volumes.seen(one)),
    )
  }

  /** Whether the claim's class can provision a volume that the node reaches. */
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

  /** Makes all later decisions use the plan. */
  assume(plan: VolumePlan, node: string): VolumePlan {
    const { of } = this.#handle
    const matches = plan.matches.map(({ volume, claim }) => {
      const bound = boundVolume(volume, claim)
      const from = of(PersistentVolumes).get(objectKey(volume))
      if (bound !== undefined && from !== undefined) this.volumes.assume(bound, from)
      return { volume: bound ?? volume, claim }
    })
    const provisions = plan.provisions.map((claim) => {
      const annotated = withAnnotations(claim, { ...claim.metadata.annotations, [SELECTED_NODE]: node })
      const from = of(PersistentVolumeClaims).get(objectKey(claim))
      if (from !== undefined) this.claims.assume(annotated, from)
      return annotated
    })
    return { matches, provisions }
  }

  forget({ matches, provisions }: VolumePlan): void {
    for (const { volume } of matches) this.volumes.forget(objectKey(volume))
    for (const claim of provisions) this.claims.forget(objectKey(claim))
  }

  /** Writes the plan and waits until all claims are bound. Throws on failure. */
  async bind(pod: PodInfo, plan: VolumePlan, node: string, { signal, timeoutMs }: BindLimits): Promise<void> {
    const { client, clock } = this.#handle
    const written: WrittenPlan = { matches: [], provisions: [] }
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

  /** Resolves when one of the claims changes, or after the poll interval. */
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

  /** Throws if a claim can never be bound. */
  #areBound(pod: PodInfo, { matches, provisions }: WrittenPlan, name: string): boolean {
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
      // Not in the informer yet.
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

/** Shared by all profiles, so that no volume is promised twice. Created on first use. */
export function volumeBinderOf(handle: Handle): VolumeBinder {
  const binder = known.get(handle.cluster) ?? new VolumeBinder(handle)
  known.set(handle.cluster, binder)
  return binder
}

interface WrittenPlan {
  readonly matches: Match[]
  readonly provisions: PersistentVolumeClaim[]
}

function demandReachable(volume: PersistentVolume, node: Node): void {
  if (isReachable(volume, node)) return
  const [from, to] = [volume.metadata.name, node.metadata.name]
  throw new Error(`pv "${from}" node affinity doesn't match node "${to}": no matching NodeSelectorTerms`)
}

function isOlder(cached: PersistentVolume | PersistentVolumeClaim, written: typeof cached): boolean {
  const [one, other] = [cached, written].map(({ metadata }) => BigInt(metadata.resourceVersion ?? '0'))
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

/** The maximum size of a volume; undefined: unknown. */
export function volumeLimit({ maximumVolumeSize, capacity }: CSIStorageCapacity): number | undefined {
  const limit = maximumVolumeSize ?? capacity
  return limit === undefined ? undefined : quantityValue(parseQuantity(limit))
}

function hasRoom(pool: CSIStorageCapacity, bytes: number, labels: Labels): boolean {
  const limit = volumeLimit(pool)
  if (limit === undefined || limit < bytes || pool.nodeTopology === undefined) return false
  return matchesLabels(asSelector(pool.nodeTopology), labels)
}
