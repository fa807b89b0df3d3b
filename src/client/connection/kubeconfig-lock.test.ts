import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, describe, it } from 'node:test'

import { createLock } from './kubeconfig-lock.ts'

describe('the lock of a kubeconfig', () => {
  const dir = mkdtempSync(join(tmpdir(), 'kubeconfig-lock-'))
  after(() => rmSync(dir, { recursive: true }))
  const kubeconfig = join(dir, 'config')
  const lock = `${kubeconfig}.lock`
  beforeEach(() => rmSync(lock, { force: true }))

  /** Leaves a lock behind, with a changed text. */
  async function leaveLock(change: (text: string) => string): Promise<void> {
    const owned = await createLock(kubeconfig)
    const text = readlinkSync(lock)
    await owned[Symbol.asyncDispose]()
    symlinkSync(change(text), lock)
  }
  const withPid = (pid: number) => (text: string) => text.replace(` ${process.pid} `, ` ${pid} `)
  const deadPid = (): number => spawnSync('true').pid

  it('is a file that exists exactly while a process has the lock', async () => {
    {
      await using _ = await createLock(kubeconfig)
      assert.ok(readlinkSync(lock).includes(` ${process.pid} `))
      await assert.rejects(createLock(kubeconfig), { code: 'EEXIST' })
    }
    assert.throws(() => readlinkSync(lock), { code: 'ENOENT' })
  })

  it('is taken over from a process that was killed', async () => {
    await leaveLock(withPid(deadPid()))
    const taken = await Promise.allSettled([createLock(kubeconfig), createLock(kubeconfig), createLock(kubeconfig)])
    assert.equal(taken.filter(({ status }) => status === 'fulfilled').length, 1)
    assert.ok(readlinkSync(lock).includes(` ${process.pid} `))
  })

  it('stays with a process of another machine', async () => {
    await leaveLock((text) => withPid(deadPid())(text).replace('hyperkube@', 'hyperkube@another-'))
    await assert.rejects(createLock(kubeconfig), { code: 'EEXIST' })
  })

  it('respects the empty lock file of kubectl', async () => {
    writeFileSync(lock, '', { mode: 0 })
    await assert.rejects(createLock(kubeconfig), { code: 'EEXIST' })
    assert.ok(existsSync(lock))
  })
})
