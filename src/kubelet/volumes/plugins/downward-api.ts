/** Volume plugin `downwardAPI`: fields of the pod as files. */
import { downwardFiles, modeOf } from '../payloads.ts'
import type { VolumePlugin } from '../volume-plugin.ts'
import { inMemory } from './empty-dir.ts'

export const downwardApi: VolumePlugin = {
  name: 'kubernetes.io/downward-api',
  volume: 'downwardAPI',
  isContent: true,
  usage: 'files',
  async plan({ pod, volume }, sources) {
    const { items = [], defaultMode } = volume.downwardAPI ?? {}
    const allocatable = sources.allocatable()
    const files = downwardFiles(items, pod, allocatable, modeOf(defaultMode))
    return { at: 'pod', memory: inMemory(pod, allocatable), files }
  },
}
