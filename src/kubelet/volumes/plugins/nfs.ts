/** Volume plugin `nfs`: an export of an NFS server, inline or through a claim. */
import { isIPv6 } from 'node:net'

import { mountOptionsOf } from '../mount-options.ts'
import type { VolumePlugin } from '../volume-plugin.ts'

export const nfs: VolumePlugin = {
  name: 'kubernetes.io/nfs',
  volume: 'nfs',
  persistent: 'nfs',
  isContent: false,
  usage: 'file-system',
  async plan({ volume, persistent }) {
    const { server = '', path = '', readOnly = false } = persistent?.object.spec.nfs ?? volume.nfs ?? {}
    const host = isIPv6(server) ? `[${server}]` : server
    return {
      at: 'mount',
      source: `${host}:${path}`,
      type: 'nfs',
      options: mountOptionsOf(persistent),
      // The readOnly of a PersistentVolume's source is that of its claim in the pod.
      readOnly: persistent?.readOnly ?? readOnly,
    }
  },
}
