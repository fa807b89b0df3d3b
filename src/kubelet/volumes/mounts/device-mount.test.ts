import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'

import { createMemoryMounter, type MemoryMounter } from '#kits/kubelet/memory-mounter.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'

import { type DeviceMountRequest, mountDevice } from './device-mount.ts'

const { logger: log } = createLog({ stream: { write: (_, done) => done() }, clock: createVirtualClock() })

interface Bed {
  readonly folder: string
  readonly mounter: MemoryMounter
  readonly mount: (more?: Partial<DeviceMountRequest>) => Promise<void>
}

async function bedIn(t: TestContext): Promise<Bed> {
  const folder = await mkdtemp(join(tmpdir(), 'devices-'))
  t.after(() => rm(folder, { recursive: true }))
  const mounter = createMemoryMounter()
  const usual = { device: '/dev/sdb', target: `${folder}/pv`, fsType: 'ext4', readOnly: false, options: [] }
  return { folder, mounter, mount: (more = {}) => mountDevice({ ...usual, ...more }, { mounter, log }) }
}

const BLKID = 'blkid -p -s TYPE -s PTTYPE -o export /dev/sdb'

describe('mountDevice() for a block device', () => {
  it('formats an empty device and mounts it', async (t) => {
    const { folder, mounter, mount } = await bedIn(t)
    await mount({ options: ['noatime'] })
    assert.deepEqual(mounter.ran, [BLKID, 'mkfs.ext4 -F -m0 /dev/sdb'])
    const options = ['noatime', 'defaults']
    assert.deepEqual(mounter.requests, [{ source: '/dev/sdb', target: `${folder}/pv`, type: 'ext4', options }])
    await mount()
    assert.equal(mounter.requests.length, 1, 'a mounted device is left alone')
  })

  it('formats a device with the options of each file system', async (t) => {
    for (const [fsType, line] of [
      ['xfs', 'mkfs.xfs -f /dev/sdb'],
      ['ext3', 'mkfs.ext3 -F -m0 /dev/sdb'],
      ['btrfs', 'mkfs.btrfs /dev/sdb'],
      ['', 'mkfs.ext4 -F -m0 /dev/sdb'],
    ] as const) {
      const { mounter, mount } = await bedIn(t)
      await mount({ fsType })
      assert.equal(mounter.ran[1], line)
    }
  })

  it('checks a formatted device and never formats it', async (t) => {
    const { mounter, mount } = await bedIn(t)
    mounter.toolResults.set('blkid', { exitCode: 0, output: 'DEVNAME=/dev/sdb\nTYPE=ext4\n' })
    await mount()
    assert.deepEqual(mounter.ran, [BLKID, 'fsck -a /dev/sdb'])
  })

  it('never formats a device with partitions or another file system', async (t) => {
    for (const output of ['DEVNAME=/dev/sdb\nPTTYPE=dos\n', 'DEVNAME=/dev/sdb\nTYPE=LVM2_member\n']) {
      const { mounter, mount } = await bedIn(t)
      mounter.toolResults.set('blkid', { exitCode: 0, output })
      await mount()
      assert.deepEqual(mounter.ran, [BLKID, 'fsck -a /dev/sdb'])
      assert.equal(mounter.requests[0]?.type, 'ext4', 'mount then refuses what it cannot mount')
    }
  })

  it('fails for an unformatted read-only volume and if blkid fails', async (t) => {
    const { folder, mounter, mount } = await bedIn(t)
    const failed = `local: failed to mount device /dev/sdb at ${folder}/pv (fstype: ext4), error`
    const text = 'cannot mount unformatted disk /dev/sdb as we are manipulating it in read-only mode'
    await assert.rejects(mount({ readOnly: true }), { message: `${failed} ${text}` })
    mounter.toolResults.set('blkid', { exitCode: undefined, output: 'spawn blkid ENOENT' })
    await assert.rejects(mount(), {
      phase: 'MountVolume.MountDevice failed',
      message: `${failed} failed to get disk format of disk /dev/sdb: spawn blkid ENOENT`,
    })
    assert.deepEqual([mounter.requests, await readdir(folder)], [[], []])
  })

  it('fails for a device whose errors fsck cannot correct', async (t) => {
    const { mounter, mount } = await bedIn(t)
    mounter.toolResults.set('blkid', { exitCode: 0, output: 'TYPE=ext4\n' })
    mounter.toolResults.set('fsck', { exitCode: 4, output: 'UNEXPECTED INCONSISTENCY' })
    await assert.rejects(mount(), /'fsck' found errors on device \/dev\/sdb but could not correct them: UNEXPECTED/)
    mounter.toolResults.set('fsck', { exitCode: 1, output: 'fixed' })
    await mount()
    assert.equal(mounter.requests.length, 1)
  })

  it('starts no program for a file system type that names a path', async (t) => {
    const { mounter, mount } = await bedIn(t)
    await assert.rejects(mount({ fsType: '../../tmp/x' }), /invalid fsType "..\/..\/tmp\/x"/)
    assert.deepEqual(mounter.ran, [])
  })
})
