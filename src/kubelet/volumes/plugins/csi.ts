/** Volume plugin `csi`: a volume of a CSI driver, inline or through a claim. */
import { CSI_PLUGIN } from '../csi/csi-names.ts'
import { inlineSource, persistentSource } from '../csi/csi-source.ts'
import type { VolumePlugin } from '../volume-plugin.ts'

export const csi: VolumePlugin = {
  name: CSI_PLUGIN,
  volume: 'csi',
  persistent: 'csi',
  isContent: false,
  plan: async ({ pod, volume, persistent }) => ({
    at: 'driver',
    source: persistent === undefined ? inlineSource(pod, volume) : persistentSource(persistent),
  }),
}
