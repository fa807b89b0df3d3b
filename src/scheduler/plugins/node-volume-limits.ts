/** NodeVolumeLimits: of the volumes of one CSI driver only so many can be attached to a node. */
import { type PersistentVolumeClaim, PersistentVolumeClaims, PersistentVolumes, type Pod } from '#apis/core/v1.ts'
import { type CSINode, CSINodes, StorageClasses, VolumeAttachments } from '#apis/storage/v1.ts'
import { keyOf, objectKey } from '#meta/object.ts'
import { driverOf } from '#model/csi-migration.ts'
import { claimKeysOf, claimNameOf, notMadeForPod, storageClassOf } from '#model/volumes.ts'

import {
  definePlugin,
  failed,
  type Handle,
  type PluginFactory,
  type Refusal,
  unresolvable,
  unschedulable,
  type Verdict,
} from '../framework.ts'
import { bump, type NodeInfo } from '../node-info.ts'

const TOO_MANY = unschedulable('node(s) exceed max volume count')

/** The drivers of volumes, by what tells one volume from another. */
type Attached = Map<string, string>

export const nodeVolumeLimits: PluginFactory = definePlugin({
  name: 'NodeVolumeLimits',
  create(handle: Handle) {
    const limits = new Limits(handle)
    return {
      wakes: [
        { on: CSINodes, actions: ['add'] },
        { on: CSINodes, actions: ['update'], helps: (_, now, old) => isRaised(now as CSINode, old as CSINode) },
        {
          on: 'AssignedPod',
          actions: ['delete'],
          helps: (_, __, gone) => gone === undefined || claimKeysOf(gone as Pod).length > 0,
        },
        {
          on: PersistentVolumeClaims,
          actions: ['add'],
          helps: (pod, now) => now !== undefined && claimKeysOf(pod).includes(objectKey(now)),
        },
        {
          on: VolumeAttachments,
          actions: ['delete'],
          helps: ({ spec }) => (spec.volumes ?? []).some(({ persistentVolumeClaim: claim }) => claim !== undefined),
        },
      ],
      preFilter({ pod }) {
        if (claimKeysOf(pod).length === 0) return undefined
        const wanted: Attached = new Map()
        const refusal = limits.note(pod, true, wanted)
        if (refusal !== undefined) return { filter: () => refusal }
        return wanted.size === 0 ? undefined : { filter: (node) => limits.judge(wanted, node) }
      },
    }
  },
})

class Limits {
  readonly #of: Handle['of']

  constructor({ of }: Handle) {
    this.#of = of
    of(CSINodes)
    of(PersistentVolumeClaims)
    of(PersistentVolumes)
    of(StorageClasses)
    of(VolumeAttachments).addIndex('node', ({ spec }) => [spec.nodeName])
  }

  judge(wanted: Attached, node: NodeInfo): Verdict {
    const most = limitsOf(this.#of(CSINodes).get(node.name))
    if (most.size === 0) return undefined
    const used: Attached = new Map()
    for (const { pod } of node.pods.values()) {
      const refusal = pod.spec.volumes === undefined ? undefined : this.note(pod, false, used)
      if (refusal !== undefined) return refusal
    }
    const fresh = [...wanted].filter(([id]) => !used.has(id)).map(([, driver]) => driver)
    const counts = new Map<string, number>()
    // What is attached without being used counts even when it is wanted, as upstream has it.
    for (const driver of [...this.#attachedTo(node.name, used).values(), ...fresh]) bump(counts, driver, 1)
    return fresh.some((driver) => (counts.get(driver) ?? 0) > (most.get(driver) ?? Infinity)) ? TOO_MANY : undefined
  }

  /** Adds the volumes of a pod that are attached to its node. A pod that is new needs all its claims. */
  note(pod: Pod, isNew: boolean, attached: Attached): Refusal | undefined {
    const { namespace } = pod.metadata
    for (const volume of pod.spec.volumes ?? []) {
      const name = claimNameOf(pod, volume)
      if (name === undefined) continue
      const claim = this.#of(PersistentVolumeClaims).get(keyOf(namespace, name))
      if (claim === undefined && isNew)
        return unresolvable(`looking up PVC ${namespace}/${name}: persistentvolumeclaim "${name}" not found`)
      if (claim === undefined) continue
      const complaint = volume.ephemeral === undefined ? undefined : notMadeForPod(pod, claim)
      if (complaint !== undefined) return failed(complaint)
      const [driver, handle] = this.#volumeOf(claim)
      if (driver !== undefined) attached.set(`${driver}/${handle}`, driver)
    }
    return undefined
  }

  /** What is not bound yet is taken to become one of its class's driver. */
  #volumeOf(claim: PersistentVolumeClaim): readonly [driver?: string, handle?: string] {
    const volume = this.#of(PersistentVolumes).get(claim.spec.volumeName ?? '')
    const csi = volume?.spec.csi
    if (volume !== undefined) return csi === undefined ? [] : [csi.driver, csi.volumeHandle]
    const provisioner = this.#of(StorageClasses).get(storageClassOf(claim))?.provisioner
    // Plugins of old are not counted: where a driver does their work, the volumes that it makes say so.
    if (provisioner === undefined || driverOf(provisioner) !== undefined) return []
    return [provisioner, `unbound ${objectKey(claim)}`]
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
