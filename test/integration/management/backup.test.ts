/** Tests backup of a running management server and restore on another machine: users, tokens and agents work again. */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import { type Outcome, runProgram } from '#kits/cmd/run-program.ts'
import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'

import { server } from '../../../src/cmd/management/server.ts'
import { newCredential, PASSWORD, runTestAgent } from './bed.ts'
import { type EchoCluster, startEchoCluster } from './downstream.ts'
import { eventuallySlow, freePort, Replica } from './replica-bed.ts'

describe('hyperkube server backup and restore', { timeout: 180_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'server-backup-'))
  const file = join(folder, 'server.tar')
  const credential = newCredential()
  const { signal } = new AbortController()
  let echo: EchoCluster
  let old: Replica
  let restored: Replica
  let administrator: string
  let jane: string
  let cluster: string
  let stopAgent: () => Promise<void>
  const run = (...args: string[]): Promise<Outcome> =>
    runProgram((context) => server.run(context, signal), {
      path: ['hyperkube', 'server'],
      args,
      cwd: folder,
      clock: realClock,
      random: secureRandom,
      readFile: (path) => readFile(path, 'utf8'),
    })

  before(async () => {
    echo = await startEchoCluster()
    echo.answer = (_request, response) => void response.writeHead(200).end('{}')
    const port = await freePort()
    const plan = { datastore: 'sqlite', serverUrl: `https://127.0.0.1:${port}`, token: undefined }
    old = new Replica(port, plan)
    restored = new Replica(port, plan)
    await old.start()
    administrator = await old.logIn()
    const made = await old.request('POST', '/v3/clusters', { token: administrator, body: { displayName: 'prod' } })
    cluster = made.body['cluster'].metadata.name as string
    const registrationToken = made.body['token'] as string
    const agent = { url: old.url, ca: old.ca, kubeconfig: echo.kubeconfig, registrationToken, credential }
    stopAgent = runTestAgent(agent)
    const user = { username: 'jane', password: 'a password for one day' }
    assert.equal((await old.request('POST', '/v3/users', { token: administrator, body: user })).status, 201)
    const body = { ...user, newPassword: PASSWORD, responseType: 'token' }
    jane = (await old.request('POST', '/v3-public/login', { body })).body['token'] as string
    await eventuallySlow('the cluster answers', async () => (await hello(old)) === 200)
  })
  after(async () => {
    await stopAgent?.()
    await Promise.all([old, restored].map((one) => one.end('SIGKILL')))
    for (const { dataDir } of [old, restored]) rmSync(dataDir, { recursive: true, force: true })
    rmSync(folder, { recursive: true, force: true })
    await echo[Symbol.asyncDispose]()
  })

  async function hello(one: Replica): Promise<number> {
    return (await one.request('GET', `/k8s/clusters/${cluster}/hello`, { token: administrator })).status
  }

  it('saves a running server to one file with mode 600', async () => {
    const { code, out, err } = await run('backup', file, '--data-dir', old.dataDir)
    assert.equal(code, 0, err)
    assert.match(
      out,
      /^Saved the server at revision \d+ \(.*\) to .*server\.tar\nIt contains the authority and the key/,
    )
    assert.equal(statSync(file).mode & 0o777, 0o600)
    assert.deepEqual(readdirSync(folder), ['server.tar'])
    const again = await run('backup', file, '--data-dir', old.dataDir)
    assert.match(again.err, /exists already/)
  })

  it('refuses to restore while the server runs, or from a damaged file', async () => {
    assert.match((await run('restore', file, '--data-dir', old.dataDir)).err, /A server is running in/)
    const whole = readFileSync(file)
    const damages: readonly (readonly [string, Buffer])[] = [
      ['cut short', whole.subarray(0, whole.length >> 1)],
      ['a flipped bit', flipped(whole, whole.length >> 1)],
      ['another archive', Buffer.alloc(2048)],
    ]
    for (const [what, bytes] of damages) {
      const damaged = join(folder, 'damaged.tar')
      writeFileSync(damaged, bytes)
      const { code, err } = await run('restore', damaged, '--data-dir', restored.dataDir)
      assert.equal(code, 1, what)
      assert.match(err, /^Error: /, what)
      assert.deepEqual(
        readdirSync(restored.dataDir).filter((name) => !name.endsWith('.lock')),
        [],
        what,
      )
    }
  })

  it('restores users, tokens and agents on another machine', async () => {
    await old.end('SIGKILL')
    const { code, err, out } = await run('restore', file, '--data-dir', restored.dataDir)
    assert.equal(code, 0, err)
    assert.match(out, /^Restored the server of 20/)
    await restored.start()
    assert.equal(restored.ca, old.ca)
    assert.equal(restored.isFirst, false)
    assert.equal((await restored.request('GET', '/v3/me', { token: jane })).status, 200)
    const login = { username: 'jane', password: PASSWORD }
    assert.equal((await restored.request('POST', '/v3-public/login', { body: login })).status, 200)
    await eventuallySlow('the agent is back', async () => (await hello(restored)) === 200)
  })

  it('keeps the replaced files under another name', async () => {
    await restored.end('SIGTERM')
    const { code, out } = await run('restore', file, '--data-dir', restored.dataDir)
    assert.equal(code, 0)
    assert.match(out, /What was there before is in .*keys\.before-.* and .*store\.db\.before-/)
    await restored.start()
    assert.equal((await restored.request('GET', '/v3/me', { token: jane })).status, 200)
  })

  it('reports invalid arguments', async () => {
    const mistakes: readonly (readonly [readonly string[], RegExp])[] = [
      [['restore'], /Give the file of the backup/],
      [['restore', 'none.tar', '--data-dir', folder], /no such file/],
      [['backup', 'a', 'b'], /Give one file/],
      [['backup', 'x.tar', '--data-dir', folder], /is no data directory of a server/],
    ]
    for (const [args, message] of mistakes) assert.match((await run(...args)).err, message)
  })
})

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes)
  copy[at] = (copy[at] ?? 0) ^ 1
  return copy
}
