/** Volume plugin `image`: the content of an image, which the runtime mounts. */
import type { VolumePlugin } from '../volume-plugin.ts'

export const image: VolumePlugin = {
  name: 'kubernetes.io/image',
  volume: 'image',
  isContent: false,
  async plan({ volume }) {
    const { reference = '', pullPolicy = 'IfNotPresent' } = volume.image ?? {}
    return { at: 'runtime', image: { reference, pullPolicy } }
  },
}
