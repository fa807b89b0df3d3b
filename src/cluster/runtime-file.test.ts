import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { realClock } from '#lib/clock.ts'

import { claimRanges } from './range-claims.ts'
import {
  destinations,
  freeRanges,
  type Ranges,
  readRuntimeFile,
  RUNTIME_FILE,
  writeRuntimeFile,
} from './runtime-file.ts'

test('the runtime file survives a round trip, and counts as absent if it is unparsable', async () => {
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

test('each cluster on a machine has separate address ranges', () => {
  const first = { podCidr: '10.244.0.0/16', serviceCidr: '10.96.0.0/16', nodeCidr: '10.108.0.0/24' }
  assert.deepEqual(freeRanges(['127.0.0.1', '::1', '192.168.1.7']), first)
  assert.equal(freeRanges(['10.244.0.1', '10.245.3.1']).podCidr, '10.246.0.0/16')
  // The machine itself may be in one of them.
  assert.equal(freeRanges(['10.96.4.7']).podCidr, '10.245.0.0/16')
  assert.equal(freeRanges(['10.108.0.1']).nodeCidr, '10.109.0.0/24')
})

test('an address range to which this machine has a route is not used for a cluster', () => {
  const routes = 'Iface\tDestination\tGateway\neth0\t00000000\t010200C0\t\nhkn\t00006C0A\t00000000\t0001\n'
  assert.deepEqual(destinations(routes), ['0.0.0.0', '10.108.0.0'])
  assert.deepEqual(destinations(''), [])
})

test('clusters that start concurrently get separate ranges, and ranges of deleted clusters are reused', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-'))
  const later = realClock.now() + 3_600_000
  const claim = (name: string, nowMs: number): Promise<Ranges> =>
    claimRanges(join(folder, name), nowMs, join(folder, 'claims'))
  try {
    const [one, two] = await Promise.all([claim('one', realClock.now()), claim('two', realClock.now())])
    assert.notEqual(one.podCidr, two.podCidr)
    assert.deepEqual(await claim('one', later), one)
    await mkdir(join(folder, 'one'))
    await writeRuntimeFile(join(folder, 'one'), { runtime: 'containerd', ...one })
    const three = await claim('three', later)
    assert.equal(three.podCidr, two.podCidr, 'of the second nothing is left')
  } finally {
    await rm(folder, { recursive: true })
  }
})
