/** Every kind of volume that this kubelet can bring. */
import type { Volume } from '#apis/core/v1.ts'

import type { VolumePlugin } from '../volume-plugin.ts'
import { configMap } from './config-map.ts'
import { downwardApi } from './downward-api.ts'
import { emptyDir } from './empty-dir.ts'
import { hostPath } from './host-path.ts'
import { projected } from './projected.ts'
import { secret } from './secret.ts'

const PLUGINS: readonly VolumePlugin[] = [configMap, downwardApi, emptyDir, hostPath, projected, secret]

/** Throws what is said of volumes nobody can bring. */
export function pluginOf(volume: Volume): VolumePlugin {
  return (
    PLUGINS.find((plugin) => plugin.volume !== undefined && volume[plugin.volume] !== undefined) ??
    refuse(kindOf(volume))
  )
}

const kindOf = (volume: Volume): string => Object.keys(volume).find((key) => key !== 'name') ?? 'unknown'

function refuse(kind: string): never {
  throw new Error(`volumes of type ${kind} are not supported by this kubelet`)
}
