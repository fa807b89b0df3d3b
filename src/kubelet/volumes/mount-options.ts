/** Reads the mount options of a PersistentVolume from its annotation or, without one, from its field. */
import type { VolumeRequest } from './volume-plugin.ts'

/** The place of mount options before PersistentVolumes had a field for them. */
const MOUNT_OPTIONS = 'volume.beta.kubernetes.io/mount-options'

export function mountOptionsOf(persistent: VolumeRequest['persistent']): readonly string[] {
  if (persistent === undefined) return []
  const { metadata, spec } = persistent.object
  return metadata.annotations?.[MOUNT_OPTIONS]?.split(',') ?? spec.mountOptions ?? []
}
