/** VolumeRestrictions: rejects nodes where another pod uses a volume that allows only one pod or one writer. */
import { Nodes, type PersistentVolumeClaim, PersistentVolumeClaims, type Pod, type Volume } from '#apis/core/v1.ts'
import { keyOf } from '#meta/object.ts'

import type { NodeInfo } from '../cluster/node-info.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import {
  definePlugin,
  type Handle,
  type PluginFactory,
  type PluginState,
  unresolvable,
  unschedulable,
  type Verdict,
} from '../framework/framework.ts'

const NO_DISK = unschedulable('node(s) had no available disk')
const IN_USE = unschedulable(
  'node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod',
)

export const volumeRestrictions: PluginFactory = definePlugin({
  name: 'VolumeRestrictions',
  create({ cluster, of }: Handle) {
    const claims = of(PersistentVolumeClaims)
    return {
      eventsToRegister: [
        {
          resource: 'AssignedPod',
          actions: ['delete'],
          queueingHint: (pod, _, gone) => gone === undefined || competes(pod, gone as Pod),
        },
        { resource: Nodes, actions: ['add'] },
        {
          resource: PersistentVolumeClaims,
          actions: ['add'],
          queueingHint: (pod, claim) => claim !== undefined && names(pod, claim as PersistentVolumeClaim),
        },
      ],
      preFilter(pod) {
        const { namespace } = pod
        const single = new Set<string>()
        for (const name of claimsNamedBy(pod.pod)) {
          const claim = claims.get(keyOf(namespace, name))
          if (claim === undefined) return unresolvable(`persistentvolumeclaim ${JSON.stringify(name)} not found`)
          if (claim.spec.accessModes?.includes('ReadWriteOncePod') === true) single.add(name)
        }
        const users = [...single].filter((name) => cluster.isClaimInUse(keyOf(namespace, name))).length
        const disks = (pod.pod.spec.volumes ?? []).filter((volume) => DISKS.some(({ of: own }) => own(volume)))
        return users === 0 && disks.length === 0 ? undefined : new ExclusiveVolumes(pod, disks, single, users)
      },
    }
  },
})

/** Claims that the pod names; a generated one belongs to this pod alone. */
function claimsNamedBy({ spec }: Pod): string[] {
  return (spec.volumes ?? []).flatMap(({ persistentVolumeClaim: claim }) => claim?.claimName ?? [])
}

function names(pod: Pod, { metadata }: PersistentVolumeClaim): boolean {
  return metadata.namespace === pod.metadata.namespace && claimsNamedBy(pod).includes(metadata.name ?? '')
}

function competes(pod: Pod, gone: Pod): boolean {
  if (pod.metadata.namespace !== gone.metadata.namespace) return false
  const theirs = claimsNamedBy(gone)
  return claimsNamedBy(pod).some((name) => theirs.includes(name)) || (pod.spec.volumes ?? []).some(isTakenBy(gone))
}

class ExclusiveVolumes implements PluginState {
  readonly #pod: PodInfo
  readonly #disks: readonly Volume[]
  /** Names of ReadWriteOncePod claims. */
  readonly #single: ReadonlySet<string>
  /** The number of other users. */
  #users: number

  constructor(pod: PodInfo, disks: readonly Volume[], single: ReadonlySet<string>, users: number) {
    this.#pod = pod
    this.#disks = disks
    this.#single = single
    this.#users = users
  }

  fork(): ExclusiveVolumes {
    return new ExclusiveVolumes(this.#pod, this.#disks, this.#single, this.#users)
  }

  add(other: PodInfo): void {
    this.#users += this.#sharedWith(other)
  }

  remove(other: PodInfo): void {
    this.#users -= this.#sharedWith(other)
  }

  filter({ pods }: NodeInfo): Verdict {
    if (this.#disks.length > 0) {
      for (const { pod } of pods.values()) if (this.#disks.some(isTakenBy(pod))) return NO_DISK
    }
    return this.#users > 0 ? IN_USE : undefined
  }

  #sharedWith({ namespace, pod }: PodInfo): number {
    return namespace === this.#pod.namespace ? claimsNamedBy(pod).filter((name) => this.#single.has(name)).length : 0
  }
}

interface Disk {
  readonly id: readonly unknown[]
  /** The servers of the disk; two disks with a common server are the same. */
  readonly servers?: readonly string[]
  readonly readOnly: boolean
}

/** Inline disks. Several pods may read one unless its plugin forbids that. */
const DISKS: readonly { readonly of: (volume: Volume) => Disk | undefined }[] = [
  {
    of: ({ gcePersistentDisk: disk }) => disk && { id: [disk.pdName], readOnly: disk.readOnly === true },
  },
  { of: ({ awsElasticBlockStore: disk }) => disk && { id: [disk.volumeID], readOnly: false } },
  { of: ({ iscsi: disk }) => disk && { id: [disk.iqn], readOnly: disk.readOnly === true } },
  {
    of: ({ rbd: disk }) =>
      disk && {
        id: [disk.pool, disk.image],
        servers: disk.monitors ?? [],
        readOnly: disk.readOnly === true,
      },
  },
]

function isTakenBy({ spec }: Pod): (volume: Volume) => boolean {
  return (volume) =>
    DISKS.some(({ of: own }) => {
      const wanted = own(volume)
      return wanted !== undefined && (spec.volumes ?? []).some((other) => clash(wanted, own(other)))
    })
}

function clash(wanted: Disk, other: Disk | undefined): boolean {
  if (other === undefined || (wanted.readOnly && other.readOnly)) return false
  if (wanted.servers !== undefined && !wanted.servers.some((one) => other.servers?.includes(one))) return false
  return wanted.id.every((part, at) => part === other.id[at])
}
