/** The table of supported volume plugins. */
import type { PersistentVolumeSpec, Volume } from '#apis/core/v1.ts'

import type { VolumePlugin } from '../volume-plugin.ts'
import { configMap } from './config-map.ts'
import { csi } from './csi.ts'
import { downwardApi } from './downward-api.ts'
import { emptyDir } from './empty-dir.ts'
import { hostPath } from './host-path.ts'
import { image } from './image.ts'
import { local } from './local.ts'
import { nfs } from './nfs.ts'
import { projected } from './projected.ts'
import { secret } from './secret.ts'

const PLUGINS: readonly VolumePlugin[] = [
  configMap,
  csi,
  downwardApi,
  emptyDir,
  hostPath,
  image,
  local,
  nfs,
  projected,
  secret,
]

/** Throws an error for unsupported volumes. */
export function pluginOf(volume: Volume): VolumePlugin {
  return (
    PLUGINS.find((plugin) => plugin.volume !== undefined && volume[plugin.volume] !== undefined) ??
    refuse(kindOf(volume, NO_KINDS))
  )
}

export function persistentPluginOf(spec: PersistentVolumeSpec): VolumePlugin {
  return (
    PLUGINS.find((plugin) => plugin.persistent !== undefined && spec[plugin.persistent] !== undefined) ??
    refuse(kindOf(spec, PERSISTENT_FIELDS))
  )
}

const NO_KINDS: ReadonlySet<string> = new Set(['name'])

/** Fields of a PersistentVolumeSpec that are not volume sources. */
const PERSISTENT_FIELDS: ReadonlySet<string> = new Set([
  'capacity',
  'accessModes',
  'claimRef',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'mountOptions',
  'volumeMode',
  'nodeAffinity',
  'volumeAttributesClassName',
])

const kindOf = (source: object, others: ReadonlySet<string>): string =>
  Object.keys(source).find((key) => !others.has(key)) ?? 'unknown'

function refuse(kind: string): never {
  throw new Error(`volumes of type ${kind} are not supported by this kubelet`)
}
