/** Reads the objects that a scheduling decision about a pod depends on, as far as the asker may list them. */
import { Namespaces, Nodes, PersistentVolumeClaims, PersistentVolumes, type Pod, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { DeviceClasses, ResourceClaims, ResourceSlices } from '#apis/resource/v1.ts'
import { CSIDrivers, CSINodes, CSIStorageCapacities, StorageClasses, VolumeAttachments } from '#apis/storage/v1.ts'
import { createGates } from '#component/flags/gates.ts'
import { runInSlices } from '#lib/time-slicing.ts'
import { kindKey } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { Reconsideration } from '#scheduler/reconsideration.ts'

import { HIDDEN, type Reader } from '../reader.ts'

const ALWAYS: readonly Kind[] = [Nodes, Pods, Namespaces]
const FOR_VOLUMES: readonly Kind[] = [
  PersistentVolumeClaims,
  PersistentVolumes,
  StorageClasses,
  CSINodes,
  CSIDrivers,
  CSIStorageCapacities,
  VolumeAttachments,
]
const FOR_DEVICES: readonly Kind[] = [ResourceClaims, ResourceSlices, DeviceClasses]

function kindsFor({ spec: { volumes = [], resourceClaims = [] } }: Pod): Kind[] {
  const hasClaims = volumes.some(
    ({ persistentVolumeClaim, ephemeral }) => persistentVolumeClaim !== undefined || ephemeral !== undefined,
  )
  return [...ALWAYS, ...(hasClaims ? FOR_VOLUMES : []), ...(resourceClaims.length > 0 ? FOR_DEVICES : [])]
}

/** The default scheduler on the objects, or the kinds that the asker may not list: without them no decision is sure. */
export async function reconsiderationFor(reader: Reader, pod: Pod): Promise<Reconsideration | { hidden: string[] }> {
  const kinds = kindsFor(pod)
  const lists = await Promise.all(kinds.map((kind) => reader.list<KubeObject>(kind)))
  const hidden = kinds.filter((_, at) => lists[at] === HIDDEN).map(({ plural }) => plural)
  if (hidden.length > 0) return { hidden }
  const objects = new Map(kinds.map((kind, at) => [kindKey(kind), lists[at] as readonly KubeObject[]]))
  return runInSlices(Reconsideration.of({ objects, client: reader.client, isEnabled: createGates(new Map()) }))
}
