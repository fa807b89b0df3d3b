import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { createMemoryMounter } from '#kits/kubelet/memory-mounter.ts'

import { kubeletFolder, podLogsFolder, removeMachineFolders, volumesFolder } from './machine-folders.ts'

test('removeMachineFolders() deletes pod directories, but no directory that is still mounted', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'hyperkube-'))
  try {
    const mounter = createMemoryMounter()
    assert.equal(await removeMachineFolders(dataDir, mounter), false)
    const volume = join(kubeletFolder(dataDir), 'pods', 'u1', 'volumes', 'v')
    await mkdir(volume, { recursive: true })
    await mkdir(podLogsFolder(dataDir))
    await mkdir(volumesFolder(dataDir))
    await mounter.mount({ source: '/home', target: volume, options: ['bind'] })
    mounter.fault = 'target is busy.'
    await assert.rejects(() => removeMachineFolders(dataDir, mounter), /target is busy/)
    assert.ok(existsSync(volume))
    mounter.fault = undefined
    assert.equal(await removeMachineFolders(dataDir, mounter), true)
    assert.deepEqual([existsSync(kubeletFolder(dataDir)), existsSync(podLogsFolder(dataDir))], [false, false])
  } finally {
    await rm(dataDir, { recursive: true })
  }
})
