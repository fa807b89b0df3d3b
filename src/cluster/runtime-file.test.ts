import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { freeRanges, readRuntimeFile, RUNTIME_FILE, writeRuntimeFile } from './runtime-file.ts'

test('what runs pods is written down and read again; what is not readable was never written', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-'))
  try {
    assert.equal(await readRuntimeFile(folder), undefined)
    const file = { runtime: 'containerd', podCidr: '10.245.0.0/16' } as const
    await writeRuntimeFile(folder, file)
    assert.deepEqual(await readRuntimeFile(folder), file)
    await writeFile(join(folder, RUNTIME_FILE), '{')
    assert.equal(await readRuntimeFile(folder), undefined)
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('each cluster on a machine has addresses of its own', () => {
  const first = { podCidr: '10.244.0.0/16', serviceCidr: '10.96.0.0/16', nodeCidr: '10.108.0.0/24' }
  assert.deepEqual(freeRanges(['127.0.0.1', '::1', '192.168.1.7']), first)
  assert.equal(freeRanges(['10.244.0.1', '10.245.3.1']).podCidr, '10.246.0.0/16')
  // The machine itself may be in one of them.
  assert.equal(freeRanges(['10.96.4.7']).podCidr, '10.245.0.0/16')
  assert.equal(freeRanges(['10.108.0.1']).nodeCidr, '10.109.0.0/24')
})
