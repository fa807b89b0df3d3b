import assert from 'node:assert/strict'
import { test } from 'node:test'

import { mountsBelow, parseMountTable } from './mount-table.ts'

const TEXT = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:45 / /pods/u1/volumes/kubernetes.io~secret/s rw master:1 - tmpfs tmpfs rw,size=64k
41 22 8:1 /data\\040x /pods/u1/volume-subpaths/a\\134b/c/0 rw shared:1 master:2 - ext4 /dev/sda1 rw
42 40 8:1 / /pods/u10 rw - ext4 /dev/sda1 rw
`

test('/proc/mounts is parsed with escaped spaces and returned newest first', () => {
  const mounts = parseMountTable(TEXT)
  assert.deepEqual(mounts[2], {
    path: '/pods/u1/volume-subpaths/a\\b/c/0',
    type: 'ext4',
    device: '8:1',
    root: '/data x',
  })
  assert.deepEqual(
    mountsBelow(mounts, '/pods/u1').map(({ type }) => type),
    ['ext4', 'tmpfs'],
  )
})
