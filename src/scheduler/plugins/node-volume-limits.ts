/**
 * NodeVolumeLimits: limits the attached volumes of each CSI driver on a node. In-tree volumes count for the CSI driver
 * that replaces their plugin, if the node has a CSINode.
 */
import { type PersistentVolumeClaim, PersistentVolumeClaims, PersistentVolumes, type Pod } from '#apis/core/v1.ts'
import {
  CSIDrivers,
  type CSINode,
  CSINodes,
  StorageClasses,
  type VolumeAttachment,
  VolumeAttachments,
} from '#apis/storage/v1.ts'
import { keyOf, objectKey } from '#meta/object.ts'
import {
  driverOf,
  migratedSource,
  translatedInline,
  translatedVolume,
  translationError,
} from '#model/volumes/csi-migration.ts'
import { claimKeysOf, claimNameOf, notMadeForPod, storageClassOf } from '#model/volumes/volumes.ts'

import { bump, type NodeInfo } from '../cluster/node-info.ts'
import {
  type ClusterEventWithHint,
  definePlugin,
  failed,
  type Handle,
  type PluginFactory,
  type PluginState,
  type Refusal,
  unresolvable,
  unschedulable,
  type Verdict,
} from '../framework/framework.ts'

const TOO_MANY = unschedulable('node(s) exceed max volume count')

/** The driver of each volume, by unique volume name: two pods with the same volume attach it once. */
type DriversByVolume = ReadonlyMap<string, string>

/** In-tree plugins whose volumes count. Others are translated but have no limit. */
const COUNTED: ReadonlySet<string> = new Set([
  'kubernetes.io/aws-ebs',
  'kubernetes.io/azure-disk',
  'kubernetes.io/cinder',
  'kubernetes.io/gce-pd',
  'kubernetes.io/portworx-volume',
])

export const nodeVolumeLimits: PluginFactory = definePlugin({
  name: 'NodeVolumeLimits',
  create(handle: Handle) {
    const limits = new Limits(handle)
    return { eventsToRegister: WAKES, preFilter: ({ pod }) => (mayCount(pod) ? stateOf(pod, limits) : undefined) }
  },
})

function mayCount(pod: Pod): boolean {
  return (pod.spec.volumes ?? []).some(
    (volume) => claimNameOf(pod, volume) !== undefined || migratedSource(volume) !== undefined,
  )
}

/** The pod's volumes are the same on all nodes with a CSINode, and on all without one. */
function stateOf(pod: Pod, limits: Limits): PluginState {
  const wanted = new Map<boolean, DriversByVolume | Refusal>()
  return {
    filter(node) {
      const csiNode = limits.csiNode(node)
      const hasCsiNode = csiNode !== undefined
      let own = wanted.get(hasCsiNode)
      if (own === undefined) wanted.set(hasCsiNode, (own = limits.attachedBy([pod], { isNew: true, hasCsiNode })))
      return 'code' in own ? own : limits.check(own, node, csiNode)
    },
  }
}

const WAKES: readonly ClusterEventWithHint[] = [
  { resource: CSINodes, actions: ['add'] },
  { resource: CSINodes, actions: ['update'], queueingHint: (_, now, old) => isRaised(now as CSINode, old as CSINode) },
  {
    resource: 'AssignedPod',
    actions: ['delete'],
    queueingHint: (_, __, gone) => gone === undefined || mayCount(gone as Pod),
  },
  {
    resource: PersistentVolumeClaims,
    actions: ['add'],
    queueingHint: (pod, now) => now !== undefined && claimKeysOf(pod).includes(objectKey(now)),
  },
  {
    resource: VolumeAttachments,
    actions: ['delete'],
    queueingHint: ({ spec }, _, gone) =>
      (spec.volumes ?? []).some(
        (volume) =>
          volume.persistentVolumeClaim !== undefined ||
          migratedSource(volume)?.driver === (gone as VolumeAttachment | undefined)?.spec.attacher,
      ),
  },
]

interface CountOptions {
  /** A new pod needs all its claims. */
  readonly isNew: boolean
  /** Whether the node has a CSINode. */
  readonly hasCsiNode: boolean
}

class Limits {
  readonly #of: Handle['of']
  readonly #mindsMissing: boolean

  constructor({ of, isEnabled }: Handle) {
    this.#of = of
    this.#mindsMissing = isEnabled('VolumeLimitScaling')
    of(CSINodes)
    of(CSIDrivers)
    of(PersistentVolumeClaims)
    of(PersistentVolumes)
    of(StorageClasses)
    of(VolumeAttachments).addIndex('node', ({ spec }) => [spec.nodeName])
  }

  csiNode({ name }: NodeInfo): CSINode | undefined {
    return this.#of(CSINodes).get(name)
  }

  check(wanted: DriversByVolume, node: NodeInfo, csiNode: CSINode | undefined): Verdict {
    if (wanted.size === 0) return undefined
    const missing = this.#mindsMissing ? this.#missing(wanted, csiNode) : undefined
    if (missing !== undefined) return unschedulable(`${missing} CSI driver is not installed on the node`)
    const most = limitsOf(csiNode)
    if (most.size === 0) return undefined
    const pods = Array.from(node.pods.values(), ({ pod }) => pod)
    const used = this.attachedBy(pods, { isNew: false, hasCsiNode: true })
    if ('code' in used) return used
    const fresh = [...wanted].filter(([id]) => !used.has(id)).map(([, driver]) => driver)
    if (fresh.every((driver) => !most.has(driver))) return undefined
    const counts = new Map<string, number>()
    // An attached volume without a user counts even if the pod wants it, as upstream.
    for (const driver of [...this.#attachedTo(node.name, used).values(), ...fresh]) bump(counts, driver, 1)
    return fresh.some((driver) => (counts.get(driver) ?? 0) > (most.get(driver) ?? Infinity)) ? TOO_MANY : undefined
  }

  /** A driver that prevents pods on nodes without it. */
  #missing(wanted: DriversByVolume, csiNode: CSINode | undefined): string | undefined {
    const installed = new Set((csiNode?.spec.drivers ?? []).map(({ name }) => name))
    return [...wanted.values()].find((driver) => {
      const minds = this.#of(CSIDrivers).get(driver)?.spec.preventPodSchedulingIfMissing === true
      return minds && !installed.has(driver)
    })
  }

  attachedBy(pods: readonly Pod[], { isNew, hasCsiNode }: CountOptions): DriversByVolume | Refusal {
    const attached = new Map<string, string>()
    for (const pod of pods) {
      for (const volume of pod.spec.volumes ?? []) {
        const found = claimNameOf(pod, volume) === undefined ? inline(pod, volume) : this.#claimed(pod, volume, isNew)
        if (found === undefined || (found.isMigrated && !hasCsiNode)) continue
        if (found.refusal !== undefined) return found.refusal
        if (found.driver !== '' && found.handle !== '') attached.set(`${found.driver}/${found.handle}`, found.driver)
      }
    }
    return attached
  }

  #claimed(pod: Pod, volume: PodVolume, isNew: boolean): CountedVolume | undefined {
    const { namespace } = pod.metadata
    const name = claimNameOf(pod, volume) ?? ''
    const claim = this.#of(PersistentVolumeClaims).get(keyOf(namespace, name))
    if (claim === undefined) {
      const missing = `looking up PVC ${namespace}/${name}: persistentvolumeclaim "${name}" not found`
      return isNew ? refusing(unresolvable(missing)) : undefined
    }
    const complaint = volume.ephemeral === undefined ? undefined : notMadeForPod(pod, claim)
    return complaint === undefined ? this.#volumeOf(claim) : refusing(failed(complaint))
  }

  /** An unbound claim counts for its class's driver. */
  #volumeOf(claim: PersistentVolumeClaim): CountedVolume | undefined {
    const volume = this.#of(PersistentVolumes).get(claim.spec.volumeName ?? '')
    if (volume === undefined) return this.#promised(claim)
    const { csi } = volume.spec
    if (csi !== undefined) return { driver: csi.driver, handle: csi.volumeHandle, isMigrated: false }
    const old = translatedVolume(volume)
    return old === undefined || !COUNTED.has(old.plugin) ? undefined : migrated(old.spec.csi)
  }

  #promised(claim: PersistentVolumeClaim): CountedVolume | undefined {
    const provisioner = this.#of(StorageClasses).get(storageClassOf(claim))?.provisioner
    if (provisioner === undefined) return undefined
    const handle = `unbound ${objectKey(claim)}`
    const driver = driverOf(provisioner)
    if (driver === undefined) return { driver: provisioner, handle, isMigrated: false }
    return COUNTED.has(provisioner) ? { driver, handle, isMigrated: true } : undefined
  }

  /** Includes volumes that are attached without a user. */
  #attachedTo(node: string, used: DriversByVolume): DriversByVolume {
    const all = new Map(used)
    for (const { spec } of this.#of(VolumeAttachments).by('node', node)) {
      const handle = this.#of(PersistentVolumes).get(spec.source.persistentVolumeName ?? '')?.spec.csi?.volumeHandle
      if (handle !== undefined && spec.attacher !== '') all.set(`${spec.attacher}/${handle}`, spec.attacher)
    }
    return all
  }
}

type PodVolume = NonNullable<Pod['spec']['volumes']>[number]

/** A volume that may be attached to a node. */
interface CountedVolume {
  readonly driver: string
  readonly handle: string
  /** From an in-tree plugin: counts only on nodes with a CSINode. */
  readonly isMigrated: boolean
  readonly refusal?: Refusal
}

function refusing(refusal: Refusal): CountedVolume {
  return { driver: '', handle: '', isMigrated: false, refusal }
}

function migrated({ driver, volumeHandle }: { readonly driver: string; readonly volumeHandle: string }): CountedVolume {
  return { driver, handle: volumeHandle, isMigrated: true }
}

/** An inline volume of the pod. */
function inline({ metadata }: Pod, volume: PodVolume): CountedVolume | undefined {
  if (!COUNTED.has(migratedSource(volume)?.plugin ?? '')) return undefined
  const old = translatedInline(volume, metadata.namespace ?? '')
  if (old !== undefined) return migrated(old.spec.csi)
  const refusal = failed(`converting volume(${volume.name}) from inline to csi: ${translationError(volume)}`)
  return { ...refusing(refusal), isMigrated: true }
}

function limitsOf(node: CSINode | undefined): ReadonlyMap<string, number> {
  return new Map(
    (node?.spec.drivers ?? []).flatMap(({ name, allocatable }) =>
      allocatable?.count === undefined ? [] : [[name, allocatable.count]],
    ),
  )
}

function isRaised(now: CSINode, old: CSINode): boolean {
  const before = limitsOf(old)
  return [...limitsOf(now)].some(([driver, count]) => count > (before.get(driver) ?? 0))
}
