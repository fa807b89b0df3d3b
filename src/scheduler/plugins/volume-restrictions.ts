/** VolumeRestrictions: volumes that only one pod may use, or only one of those that write. */
import { Nodes, type PersistentVolumeClaim, PersistentVolumeClaims, type Pod, type Volume } from '#apis/core/v1.ts'
import { keyOf } from '#meta/object.ts'

import {
  type Case,
  definePlugin,
  type Handle,
  type PluginFactory,
  unresolvable,
  unschedulable,
  type Verdict,
} from '../framework.ts'
import type { NodeInfo } from '../node-info.ts'
import type { PodInfo } from '../pod-info.ts'

const NO_DISK = unschedulable('node(s) had no available disk')
const IN_USE = unschedulable(
  'node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod',
)

export const volumeRestrictions: PluginFactory = definePlugin({
  name: 'VolumeRestrictions',
  create({ cluster, of }: Handle) {
    const claims = of(PersistentVolumeClaims)
    return {
      wakes: [
        {
          on: 'AssignedPod',
          actions: ['delete'],
          helps: (pod, _, gone) => gone === undefined || competes(pod, gone as Pod),
        },
        { on: Nodes, actions: ['add'] },
        {
          on: PersistentVolumeClaims,
          actions: ['add'],
          helps: (pod, claim) => claim !== undefined && names(pod, claim as PersistentVolumeClaim),
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
        return users === 0 && disks.length === 0 ? undefined : new Exclusive(pod, disks, single, users)
      },
    }
  },
})

/** Named in the pod; what is made for it alone is nobody else's. */
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

class Exclusive implements Case {
  readonly #pod: PodInfo
  readonly #disks: readonly Volume[]
  /** Names of claims that only one pod may use. */
  readonly #single: ReadonlySet<string>
  /** How many others do. */
  #users: number

  constructor(pod: PodInfo, disks: readonly Volume[], single: ReadonlySet<string>, users: number) {
    this.#pod = pod
    this.#disks = disks
    this.#single = single
    this.#users = users
  }

  fork(): Exclusive {
    return new Exclusive(this.#pod, this.#disks, this.#single, this.#users)
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
  /** Where it may be found; two that have one in common are the same. */
  readonly servers?: readonly string[]
  readonly readOnly: boolean
}

/** Disks that pods name themselves. Any number may read, unless it says otherwise. */
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
