/** Volume plugin `hostPath`: a path of the node, inline or through a claim. */
import type { VolumePlugin } from '../volume-plugin.ts'

export const hostPath: VolumePlugin = {
  name: 'kubernetes.io/host-path',
  volume: 'hostPath',
  persistent: 'hostPath',
  isContent: false,
  async plan({ volume, persistent }) {
    const { path = '', type = '' } = persistent?.object.spec.hostPath ?? volume.hostPath ?? {}
    if (path.split('/').includes('..')) throw new Error(`invalid HostPath \`${path}\`: must not contain '..'`)
    return { at: 'node', path, type, readOnly: persistent?.readOnly ?? false }
  },
}
