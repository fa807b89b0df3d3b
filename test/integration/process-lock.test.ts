/** Tests locks between real processes: a lock names its owner, and is released when the owner ends. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it, type TestContext } from 'node:test'

import { isOwnerVisible, lockOwner, takeProcessLock } from '#lib/process/lock.ts'

const MODULE = join(import.meta.dirname, '..', '..', 'src', 'lib', 'process', 'lock.ts')
const dir = mkdtempSync(join(tmpdir(), 'process-lock-'))
after(() => rmSync(dir, { recursive: true, force: true }))

/** Runs JavaScript in another process, with `take` and `file` in scope. */
const script = (file: string, body: string): string[] => [
  '--input-type=module',
  '--eval',
  `const { takeProcessLock: take, lockOwner } = await import(${JSON.stringify(MODULE)}); const file = ${JSON.stringify(file)}; ${body}`,
]

/** Whether another process gets the lock now. */
function isFreeElsewhere(file: string): boolean {
  const args = script(file, `console.log('lock' in take(file))`)
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  assert.match(stdout, /^(?:true|false)\n$/, stderr)
  return stdout === 'true\n'
}

/** A process that takes the lock and stays. */
async function startOwner(t: TestContext, file: string, use = 'service'): Promise<ChildProcess> {
  const body = `globalThis.held = take(file, '${use}'); console.log('taken'); setInterval(() => {}, 1e6)`
  const child = spawn(process.execPath, script(file, body), { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return child
}

describe('lock of a process', () => {
  it('names the process that has it and its task', async (t) => {
    const file = join(dir, 'owner')
    const child = await startOwner(t, file, 'upkeep')
    const owner = lockOwner(file)
    assert.deepEqual([owner?.pid, owner?.use], [child.pid, 'upkeep'])
    assert.ok(owner && isOwnerVisible(owner))
    const attempt = takeProcessLock(file)
    assert.ok('owner' in attempt)
    assert.deepEqual(attempt.owner, owner)
  })

  it('is free after SIGKILL of its owner', async (t) => {
    const file = join(dir, 'killed')
    const child = await startOwner(t, file)
    child.kill('SIGKILL')
    await once(child, 'exit')
    assert.equal(lockOwner(file), undefined)
    const attempt = takeProcessLock(file)
    assert.ok('lock' in attempt)
    attempt.lock.release()
  })

  it('stays with a process that tries to take it a second time', () => {
    const file = join(dir, 'twice')
    const first = takeProcessLock(file)
    assert.ok('lock' in first)
    assert.ok('owner' in takeProcessLock(file))
    assert.equal(lockOwner(file)?.pid, process.pid)
    assert.equal(isFreeElsewhere(file), false)
    first.lock.release()
    assert.equal(isFreeElsewhere(file), true)
  })

  it('is free if a later process has the pid of its owner', async (t) => {
    const file = join(dir, 'recycled')
    const child = await startOwner(t, file)
    const owner = lockOwner(file)
    assert.ok(owner)
    assert.equal(owner.pid, child.pid)
    assert.equal(isOwnerVisible({ ...owner, began: owner.began + 1 }), process.platform !== 'linux')
  })

  it('creates no file if it is read without an owner', () => {
    const file = join(dir, 'absent')
    assert.equal(lockOwner(file), undefined)
    assert.equal(existsSync(file), false)
  })

  it('has one owner at a time while its file is deleted repeatedly', async () => {
    const file = join(dir, 'discarded')
    const log = join(dir, 'log')
    // mkdir fails for the second of two that believe they own the lock.
    const body = `
      const fs = await import('node:fs')
      for (let taken = 0; taken < 30; ) {
        const attempt = take(file)
        if (!('lock' in attempt)) continue
        fs.mkdirSync(${JSON.stringify(log)})
        fs.rmdirSync(${JSON.stringify(log)})
        attempt.lock.discard()
        taken++
      }`
    const children = Array.from({ length: 3 }, () => spawn(process.execPath, script(file, body), { stdio: 'inherit' }))
    const codes = await Promise.all(children.map(async (child) => (await once(child, 'exit'))[0] as number))
    assert.deepEqual(codes, [0, 0, 0])
  })

  for (const [what, content] of [
    ['a page of zeros', Buffer.alloc(4096)],
    ['random bytes', Buffer.from('not a database at all'.repeat(300))],
  ] as const) {
    it(`works after a power failure left ${what} in its file`, () => {
      const file = join(dir, what.replaceAll(' ', '-'))
      writeFileSync(file, content)
      assert.equal(lockOwner(file), undefined)
      const attempt = takeProcessLock(file)
      assert.ok('lock' in attempt)
      assert.equal(isFreeElsewhere(file), false)
      attempt.lock.release()
    })
  }
})
