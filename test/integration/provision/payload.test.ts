/** Tests the program that `hyperkube build` uploads: complete, and reproducible byte for byte. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

import { makePayload } from '#provision/payload.ts'

import { kind, skip } from './this-machine.ts'

const run = promisify(execFile)

test('makePayload() builds once a program that runs on an empty machine', { skip }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-payload-'))
  try {
    const root = join(import.meta.dirname, '..', '..', '..')
    const options = { root, cache: join(folder, 'cache') }
    const payload = await makePayload(kind, options)
    assert.deepEqual(await makePayload(kind, options), payload)
    const there = join(folder, 'there')
    await mkdir(there)
    await run('tar', ['-xzf', payload.file, '-C', there])
    const env = { PATH: '/usr/bin:/bin', XDG_CACHE_HOME: join(folder, 'compiled') }
    const { stdout } = await run(join(there, 'bin', 'hyperkube'), ['--version'], { env })
    assert.match(stdout, /^hyperkube v/)
    await assert.rejects(makePayload('riscv64', options), /There is no Node for machines of kind "riscv64"/)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
