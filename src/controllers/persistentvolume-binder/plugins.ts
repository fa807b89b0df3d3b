/** Who makes, empties and deletes volumes: this controller itself, which knows folders and NFS, or a driver outside. Pure. */
import type { PersistentVolume } from '#apis/core/v1.ts'
import { driverOf } from '#model/csi-migration.ts'
import { hasAnnotation } from '#model/volume-binding.ts'

import { MIGRATED_TO, PROVISIONED_BY } from './annotations.ts'

export const HOST_PATH = 'kubernetes.io/host-path'
const NFS = 'kubernetes.io/nfs'

export type Maker =
  | { readonly by: 'host-path' }
  | { readonly by: 'driver'; readonly name: string }
  /** What it says it needs is not there. */
  | { readonly by: 'nobody'; readonly why: string }

/** Who makes the volumes of a class with this provisioner. */
export function makerOf(provisioner: string): Maker {
  const driver = driverOf(provisioner)
  return driver === undefined ? pluginOf(provisioner, 'provisionable') : { by: 'driver', name: driver }
}

/** Who deletes the volume. */
export function deleterOf(volume: PersistentVolume): Maker {
  const provisioner = volume.metadata.annotations?.[PROVISIONED_BY] ?? ''
  if (provisioner !== '') return pluginOf(provisioner, 'deletable')
  const { csi, hostPath, nfs } = volume.spec
  if (hasAnnotation(volume, MIGRATED_TO) || csi !== undefined) return { by: 'driver', name: csi?.driver ?? '' }
  if (hostPath !== undefined) return { by: 'host-path' }
  const problem = nfs === undefined ? 'no volume plugin matched' : 'no deletable volume plugin matched'
  return { by: 'nobody', why: `error getting deleter volume plugin for volume "${volume.metadata.name}": ${problem}` }
}

function pluginOf(name: string, ability: string): Maker {
  if (name === HOST_PATH) return { by: 'host-path' }
  if (!name.startsWith('kubernetes.io/')) return { by: 'driver', name }
  return {
    by: 'nobody',
    why: name === NFS ? `no ${ability} volume plugin matched` : `no volume plugin matched name: ${name}`,
  }
}
