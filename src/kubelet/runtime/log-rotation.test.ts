import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'

import { Collector } from '#kits/cmd/run-program.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'

import type { PodOfNode } from '../pod/pod-of-node.ts'
import { type LogRotationOptions, planRotation, rotateLogs } from './log-rotation.ts'

describe('planRotation() of container logs', () => {
  it('removes the oldest logs and compresses the others', () => {
    const beside = ['0.log', '0.log.20260101-000001.gz', '0.log.20260101-000002.gz', '0.log.20260101-000003', '1.log']
    assert.deepEqual(planRotation('0.log', beside, 5), { remove: [], compress: ['0.log.20260101-000003'] })
    assert.deepEqual(planRotation('0.log', beside, 3), {
      remove: ['0.log.20260101-000001.gz', '0.log.20260101-000002.gz'],
      compress: ['0.log.20260101-000003'],
    })
    assert.deepEqual(planRotation('0.log', beside, 2).compress, [])
  })

  it('repeats the compression that a killed kubelet left unfinished', () => {
    const beside = ['0.log', '0.log.1', '0.log.1.tmp', '0.log.2', '0.log.2.gz']
    assert.deepEqual(planRotation('0.log', beside, 5), { remove: ['0.log.1.tmp', '0.log.2'], compress: ['0.log.1'] })
  })
})

interface Bed extends LogRotationOptions {
  readonly folder: string
  readonly reopened: string[]
  readonly output: Collector
}

async function bedOf(t: TestContext, refuses = false): Promise<Bed> {
  const folder = await mkdtemp(join(tmpdir(), 'rotation-'))
  t.after(() => rm(folder, { recursive: true }))
  await mkdir(join(folder, 'c'))
  const clock = createVirtualClock(Date.UTC(2026, 10, 16, 4, 5, 6))
  const reopened: string[] = []
  const output = new Collector()
  const log = createLog({
    clock,
    stream: output,
    errorStream: output,
    format: 'text',
    verbosity: 0,
    vmodule: [],
  }).logger
  const record = { run: { startedMs: 0 } }
  const current = { containerId: 'k1', logPath: join(folder, 'c', '0.log') }
  const pods = [{ containers: new Map([['c', { record, current, previous: undefined }]]) } as unknown as PodOfNode]
  return {
    folder,
    reopened,
    output,
    clock,
    log,
    pods: () => pods,
    policy: { maxBytes: 10, maxFiles: 3, workers: 1, intervalMs: 10_000 },
    runtime: {
      async reopenContainerLog({ containerId = '' }) {
        if (refuses) throw new Error('no')
        reopened.push(containerId)
        await writeFile(join(folder, 'c', '0.log'), '')
        return {}
      },
    },
  }
}

describe('rotateLogs() of a container', () => {
  it('ignores a log below the size limit', async (t) => {
    const bed = await bedOf(t)
    await writeFile(join(bed.folder, 'c', '0.log'), 'small')
    await rotateLogs(bed)
    assert.deepEqual(bed.reopened, [])
  })

  it('renames a log above the size limit and compresses the previous one', async (t) => {
    const bed = await bedOf(t)
    const path = join(bed.folder, 'c')
    await writeFile(join(path, '0.log'), 'more than ten bytes')
    await writeFile(join(path, '0.log.20261116-040000'), 'older')
    await writeFile(join(path, '0.log.20261115-040000.gz'), 'oldest')
    await rotateLogs(bed)
    assert.deepEqual((await readdir(path)).sort(), ['0.log', '0.log.20261116-040000.gz', '0.log.20261116-040506'])
    assert.equal(gunzipSync(await readFile(join(path, '0.log.20261116-040000.gz'))).toString(), 'older')
    assert.equal(await readFile(join(path, '0.log.20261116-040506'), 'utf8'), 'more than ten bytes')
    assert.deepEqual(bed.reopened, ['k1'])
  })

  it('restores the name of the log if the runtime fails to reopen it', async (t) => {
    const bed = await bedOf(t, true)
    await writeFile(join(bed.folder, 'c', '0.log'), 'more than ten bytes')
    await rotateLogs(bed)
    assert.deepEqual(await readdir(join(bed.folder, 'c')), ['0.log'])
    assert.match(bed.output.text, /Failed to rotate log for container/)
  })

  it('makes the runtime reopen a log that was deleted', async (t) => {
    const bed = await bedOf(t)
    await rotateLogs(bed)
    assert.deepEqual(bed.reopened, ['k1'])
  })
})
