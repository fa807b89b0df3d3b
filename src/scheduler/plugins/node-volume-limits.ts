/**
 * NodeVolumeLimits: of the volumes of one CSI driver only so many can be attached to a node. Volumes of plugins of old count as
 * those of the driver that does their work, on nodes that say which drivers they have.
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
import { driverOf, migratedSource, translatedInline, translatedVolume, whyUntranslated } from '#model/csi-migration.ts'
import { claimKeysOf, claimNameOf, notMadeForPod, storageClassOf } from '#model/volumes.ts'

import {
  type Case,
  definePlugin,
  failed,
  type Handle,
  type PluginFactory,
  type Refusal,
  unresolvable,
  unschedulable,
  type Verdict,
  type Wake,
} from '../framework.ts'
import { bump, type NodeInfo } from '../node-info.ts'

const TOO_MANY = unschedulable('node(s) exceed max volume count')

/** The drivers of volumes, by what tells one volume from another: two pods that use the same one attach it once. */
type Attached = ReadonlyMap<string, string>

/** Plugins of old whose volumes nodes leave to drivers. Those of the others are translated, but nobody counts them. */
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
    return { wakes: WAKES, preFilter: ({ pod }) => (mayCount(pod) ? caseOf(pod, limits) : undefined) }
  },
})

function mayCount(pod: Pod): boolean {
  return (pod.spec.volumes ?? []).some(
    (volume) => claimNameOf(pod, volume) !== undefined || migratedSource(volume) !== undefined,
  )
}

/** What the pod would attach is the same on all nodes that say which drivers they have, and on all that do not. */
function caseOf(pod: Pod, limits: Limits): Case {
  const wanted = new Map<boolean, Attached | Refusal>()
  return {
    filter(node) {
      const csiNode = limits.csiNode(node)
      const isTold = csiNode !== undefined
      let own = wanted.get(isTold)
      if (own === undefined) wanted.set(isTold, (own = limits.attachedBy([pod], { isNew: true, isTold })))
      return 'code' in own ? own : limits.judge(own, node, csiNode)
    },
  }
}

const WAKES: readonly Wake[] = [
  { on: CSINodes, actions: ['add'] },
  { on: CSINodes, actions: ['update'], helps: (_, now, old) => isRaised(now as CSINode, old as CSINode) },
  {
    on: 'AssignedPod',
    actions: ['delete'],
    helps: (_, __, gone) => gone === undefined || mayCount(gone as Pod),
  },
  {
    on: PersistentVolumeClaims,
    actions: ['add'],
    helps: (pod, now) => now !== undefined && claimKeysOf(pod).includes(objectKey(now)),
  },
  {
    on: VolumeAttachments,
    actions: ['delete'],
    helps: ({ spec }, _, gone) =>
      (spec.volumes ?? []).some(
        (volume) =>
          volume.persistentVolumeClaim !== undefined ||
          migratedSource(volume)?.driver === (gone as VolumeAttachment | undefined)?.spec.attacher,
      ),
  },
]

interface Seen {
  /** A pod that is new needs all its claims. */
  readonly isNew: boolean
  /** Whether the node says which drivers it has. */
  readonly isTold: boolean
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

  judge(wanted: Attached, node: NodeInfo, csiNode: CSINode | undefined): Verdict {
    if (wanted.size === 0) return undefined
    const missing = this.#mindsMissing ? this.#missing(wanted, csiNode) : undefined
    if (missing !== undefined) return unschedulable(`${missing} CSI driver is not installed on the node`)
    const most = limitsOf(csiNode)
    if (most.size === 0) return undefined
    const pods = Array.from(node.pods.values(), ({ pod }) => pod)
    const used = this.attachedBy(pods, { isNew: false, isTold: true })
    if ('code' in used) return used
    const fresh = [...wanted].filter(([id]) => !used.has(id)).map(([, driver]) => driver)
    if (fresh.every((driver) => !most.has(driver))) return undefined
    const counts = new Map<string, number>()
    // What is attached without being used counts even when it is wanted, as upstream has it.
    for (const driver of [...this.#attachedTo(node.name, used).values(), ...fresh]) bump(counts, driver, 1)
    return fresh.some((driver) => (counts.get(driver) ?? 0) > (most.get(driver) ?? Infinity)) ? TOO_MANY : undefined
  }

  /** A driver that would rather have no pods where it is not. */
  #missing(wanted: Attached, csiNode: CSINode | undefined): string | undefined {
    const installed = new Set((csiNode?.spec.drivers ?? []).map(({ name }) => name))
    return [...wanted.values()].find((driver) => {
      const minds = this.#of(CSIDrivers).get(driver)?.spec.preventPodSchedulingIfMissing === true
      return minds && !installed.has(driver)
    })
  }

  attachedBy(pods: readonly Pod[], { isNew, isTold }: Seen): Attached | Refusal {
    const attached = new Map<string, string>()
    for (const pod of pods) {
      for (const volume of pod.spec.volumes ?? []) {
        const found = claimNameOf(pod, volume) === undefined ? inline(pod, volume) : this.#claimed(pod, volume, isNew)
        if (found === undefined || (found.isMigrated && !isTold)) continue
        if (found.refusal !== undefined) return found.refusal
        if (found.driver !== '' && found.handle !== '') attached.set(`${found.driver}/${found.handle}`, found.driver)
      }
    }
    return attached
  }

  #claimed(pod: Pod, volume: PodVolume, isNew: boolean): Counted | undefined {
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

  /** What is not bound yet is taken to become one of its class's driver. */
  #volumeOf(claim: PersistentVolumeClaim): Counted | undefined {
    const volume = this.#of(PersistentVolumes).get(claim.spec.volumeName ?? '')
    if (volume === undefined) return this.#promised(claim)
    const { csi } = volume.spec
    if (csi !== undefined) return { driver: csi.driver, handle: csi.volumeHandle, isMigrated: false }
    const old = translatedVolume(volume)
    return old === undefined || !COUNTED.has(old.plugin) ? undefined : migrated(old.spec.csi)
  }

  #promised(claim: PersistentVolumeClaim): Counted | undefined {
    const provisioner = this.#of(StorageClasses).get(storageClassOf(claim))?.provisioner
    if (provisioner === undefined) return undefined
    const handle = `unbound ${objectKey(claim)}`
    const driver = driverOf(provisioner)
    if (driver === undefined) return { driver: provisioner, handle, isMigrated: false }
    return COUNTED.has(provisioner) ? { driver, handle, isMigrated: true } : undefined
  }

  /** With those that are attached though no pod uses them. */
  #attachedTo(node: string, used: Attached): Attached {
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
interface Counted {
  readonly driver: string
  readonly handle: string
  /** It was a plugin's: it counts only on nodes that say which drivers they have. */
  readonly isMigrated: boolean
  readonly refusal?: Refusal
}

function refusing(refusal: Refusal): Counted {
  return { driver: '', handle: '', isMigrated: false, refusal }
}

function migrated({ driver, volumeHandle }: { readonly driver: string; readonly volumeHandle: string }): Counted {
  return { driver, handle: volumeHandle, isMigrated: true }
}

/** One that is described in the pod itself. */
function inline({ metadata }: Pod, volume: PodVolume): Counted | undefined {
  if (!COUNTED.has(migratedSource(volume)?.plugin ?? '')) return undefined
  const old = translatedInline(volume, metadata.namespace ?? '')
  if (old !== undefined) return migrated(old.spec.csi)
  const refusal = failed(`converting volume(${volume.name}) from inline to csi: ${whyUntranslated(volume)}`)
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
