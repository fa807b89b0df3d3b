import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { pauseProgram } from './pause-program.ts'

const isHere = process.platform === 'linux' && process.arch === 'x64'

describe('program of the pause container', () => {
  it('is a small ELF file for its architecture', () => {
    for (const [architecture, machine] of [
      ['amd64', 0x3e],
      ['arm64', 0xb7],
    ] as const) {
      const file = pauseProgram(architecture)
      assert.equal(file.subarray(0, 4).toString('latin1'), '\x7fELF')
      assert.equal(file.readUInt16LE(18), machine)
      assert.ok(file.length < 512)
    }
  })

  it(
    'waits, survives SIGCHLD, and exits on SIGTERM and SIGINT',
    { skip: isHere ? false : 'needs Linux on x86-64' },
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'hk-pause-'))
      try {
        const path = join(folder, 'pause')
        await writeFile(path, pauseProgram('amd64'), { mode: 0o755 })
        for (const signal of ['SIGTERM', 'SIGINT'] as const) {
          const child = spawn(path, { stdio: 'ignore' })
          await once(child, 'spawn')
          child.kill('SIGCHLD')
          child.kill(signal)
          // Before the program blocks the signal, the kernel's default action kills it.
          const [code, by] = await once(child, 'exit')
          assert.ok(code === 0 || by === signal)
        }
      } finally {
        await rm(folder, { recursive: true })
      }
    },
  )
})
