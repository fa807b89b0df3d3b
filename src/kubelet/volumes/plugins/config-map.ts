/** Volume plugin `configMap`: keys of a ConfigMap as files on disk. */
import { fromConfigMap } from '../content.ts'
import { modeOf } from '../payloads.ts'
import type { VolumePlugin } from '../volume-plugin.ts'

export const configMap: VolumePlugin = {
  name: 'kubernetes.io/configmap',
  volume: 'configMap',
  isContent: true,
  usage: 'files',
  async plan({ pod, volume }, sources) {
    const { defaultMode, ...source } = volume.configMap ?? {}
    const files = await fromConfigMap({ pod, sources, mode: modeOf(defaultMode) }, source)
    return { at: 'pod', files }
  },
}
