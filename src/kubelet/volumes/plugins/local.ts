/**
 * Volume plugin `local`: bind-mounts a directory or the file system of a block device, or provides the block device
 * itself.
 */
import { goQuote } from '#lib/go/text.ts'

import type { VolumePlugin } from '../volume-plugin.ts'

export const local: VolumePlugin = {
  name: 'kubernetes.io/local-volume',
  persistent: 'local',
  isContent: false,
  usage: 'file-system',
  async plan({ persistent }) {
    const { spec, metadata } = persistent?.object ?? { spec: {}, metadata: {} }
    const { path = '', fsType = 'ext4' } = spec.local ?? {}
    if (path === '') throw new Error(`LocalVolume volume ${goQuote(metadata.name ?? '')} path is empty`)
    if (path.split('/').includes('..')) throw new Error(`invalid path: ${path} must not contain '..'`)
    const { readOnly = false } = persistent ?? {}
    if (spec.volumeMode === 'Block') return { at: 'device', path, readOnly }
    return { at: 'bind', from: path, readOnly, options: spec.mountOptions ?? [], fsType }
  },
}
