/** Volume plugin `secret`: keys of a Secret as files in memory. */
import { fromSecret } from '../content.ts'
import { modeOf } from '../payloads.ts'
import type { VolumePlugin } from '../volume-plugin.ts'
import { inMemory } from './empty-dir.ts'

export const secret: VolumePlugin = {
  name: 'kubernetes.io/secret',
  volume: 'secret',
  isContent: true,
  usage: 'files',
  async plan({ pod, volume }, sources) {
    const { defaultMode, secretName: name, ...source } = volume.secret ?? {}
    const files = await fromSecret({ pod, sources, mode: modeOf(defaultMode) }, { ...source, name })
    return { at: 'pod', memory: inMemory(pod, sources.allocatable()), files }
  },
}
