/**
 * Selects the provisioner, recycler and deleter of a volume: this controller (hostPath and NFS) or an external driver.
 * Pure.
 */
import type { PersistentVolume } from '#apis/core/v1.ts'
import { hasAnnotation } from '#model/volumes/binding.ts'
import { driverOf } from '#model/volumes/csi-migration.ts'

import { MIGRATED_TO, PROVISIONED_BY } from './annotations.ts'

export const HOST_PATH = 'kubernetes.io/host-path'
const NFS = 'kubernetes.io/nfs'

export type Maker =
  | { readonly by: 'host-path' }
  | { readonly by: 'driver'; readonly name: string }
  /** No plugin can do it. */
  | { readonly by: 'none'; readonly why: string }

/** The provisioner of a class. */
export function makerOf(provisioner: string): Maker {
  const driver = driverOf(provisioner)
  return driver === undefined ? pluginOf(provisioner, 'provisionable') : { by: 'driver', name: driver }
}

/** The deleter of the volume. */
export function deleterOf(volume: PersistentVolume): Maker {
  const provisioner = volume.metadata.annotations?.[PROVISIONED_BY] ?? ''
  if (provisioner !== '') return pluginOf(provisioner, 'deletable')
  const { csi, hostPath, nfs } = volume.spec
  if (hasAnnotation(volume, MIGRATED_TO) || csi !== undefined) return { by: 'driver', name: csi?.driver ?? '' }
  if (hostPath !== undefined) return { by: 'host-path' }
  const problem = nfs === undefined ? 'no volume plugin matched' : 'no deletable volume plugin matched'
  return { by: 'none', why: `error getting deleter volume plugin for volume "${volume.metadata.name}": ${problem}` }
}

function pluginOf(name: string, ability: string): Maker {
  if (name === HOST_PATH) return { by: 'host-path' }
  if (!name.startsWith('kubernetes.io/')) return { by: 'driver', name }
  return {
    by: 'none',
    why: name === NFS ? `no ${ability} volume plugin matched` : `no volume plugin matched name: ${name}`,
  }
}
