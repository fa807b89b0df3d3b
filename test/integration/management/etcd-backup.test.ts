/**
 * Tests backup of a management server whose objects are in etcd, and restore into another etcd on another machine:
 * users, tokens, agents and replicas work again.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import { type Outcome, runProgram } from '#kits/cmd/run-program.ts'
import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { startCluster, type TestCluster, whyNoEtcd, whyNoEtcdctl } from '#storage/etcd/etcd-cluster.fixture.ts'

import { server } from '../../../src/cmd/management/server.ts'
import { newCredential, PASSWORD, runTestAgent } from './bed.ts'
import { type EchoCluster, startEchoCluster } from './downstream.ts'
import { eventuallySlow, freePort, Replica } from './replica-bed.ts'

const skip = whyNoEtcd() ?? whyNoEtcdctl() ?? false

describe('hyperkube server backup and restore with etcd', { skip, timeout: 240_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'etcd-backup-'))
  const file = join(folder, 'server.tar')
  const credential = newCredential()
  const { signal } = new AbortController()
  const etcds: TestCluster[] = []
  const replicas: Replica[] = []
  let echo: EchoCluster
  let old: Replica
  let serverUrl: string
  let administrator: string
  let jane: string
  let cluster: string
  let stopAgent: () => Promise<void>
  /** What `restore` printed. */
  let report: string

  const run = (...args: string[]): Promise<Outcome> =>
    runProgram((context) => server.run(context, signal), {
      path: ['hyperkube', 'server'],
      args,
      cwd: folder,
      clock: realClock,
      random: secureRandom,
      readFile: (path) => readFile(path, 'utf8'),
    })

  async function startEtcd(snapshot?: string): Promise<string> {
    const etcd = await startCluster(snapshot === undefined ? {} : { snapshot })
    etcds.push(etcd)
    return etcd.urls[0] ?? ''
  }

  function replicaOf(datastore: string, port: number, token?: string, dataDir?: string): Replica {
    const replica = new Replica(port, { datastore, serverUrl, token }, dataDir)
    replicas.push(replica)
    return replica
  }

  async function hello(one: Replica): Promise<number> {
    return (await one.request('GET', `/k8s/clusters/${cluster}/hello`, { token: administrator })).status
  }

  before(async () => {
    echo = await startEchoCluster()
    echo.answer = (_request, response) => void response.writeHead(200).end('{}')
    const port = await freePort()
    serverUrl = `https://127.0.0.1:${port}`
    old = replicaOf(await startEtcd(), port)
    await old.start()
    administrator = await old.logIn()
    const made = await old.request('POST', '/v3/clusters', { token: administrator, body: { displayName: 'prod' } })
    cluster = made.body['cluster'].metadata.name as string
    const registrationToken = made.body['token'] as string
    stopAgent = runTestAgent({ url: old.url, ca: old.ca, kubeconfig: echo.kubeconfig, registrationToken, credential })
    jane = await createUser('jane')
    await eventuallySlow('the cluster answers', async () => (await hello(old)) === 200)
  })
  after(async () => {
    await stopAgent?.()
    await Promise.all(replicas.map((one) => one.end('SIGKILL')))
    for (const { dataDir } of replicas) rmSync(dataDir, { recursive: true, force: true })
    await Promise.all(etcds.map((etcd) => etcd.stop()))
    rmSync(folder, { recursive: true, force: true })
    await echo[Symbol.asyncDispose]()
  })

  async function createUser(username: string): Promise<string> {
    const user = { username, password: 'a password for one day' }
    assert.equal((await old.request('POST', '/v3/users', { token: administrator, body: user })).status, 201)
    const body = { ...user, newPassword: PASSWORD, responseType: 'token' }
    return (await old.request('POST', '/v3-public/login', { body })).body['token'] as string
  }

  it('saves the objects in etcd and the keys of the data directory to one file', async () => {
    const [datastore = ''] = etcds[0]?.urls ?? []
    const { code, out, err } = await run('backup', file, '--data-dir', old.dataDir, '--datastore', datastore)
    assert.equal(code, 0, err)
    assert.match(out, /^Saved the server at revision \d+ \(.*\) to .*server\.tar\n/)
    assert.equal(statSync(file).mode & 0o777, 0o600)
    assert.match(await createUser('late'), /^hk_/)
  })

  it('fails without a file if etcd does not answer', async () => {
    const target = join(folder, 'none.tar')
    const datastore = `http://127.0.0.1:${await freePort()}`
    const { code, err } = await run('backup', target, '--data-dir', old.dataDir, '--datastore', datastore)
    assert.equal(code, 1)
    assert.match(err, /^Error: /)
    assert.throws(() => statSync(target), /ENOENT/)
  })

  it('restores the keys, and prints how etcdctl restores the objects', async () => {
    await old.end('SIGKILL')
    await Promise.all(etcds.splice(0).map((etcd) => etcd.stop()))
    const { code, out, err } = await run('restore', file, '--data-dir', join(folder, 'data'))
    assert.equal(code, 0, err)
    report = out
    assert.match(
      report,
      /Restore them on every member of etcd before the server starts: "etcdctl snapshot restore \S+ /,
    )
  })

  it('has users, tokens and agents on another machine with another etcd', async () => {
    const [, snapshot] = /etcdctl snapshot restore (\S+) /.exec(report) ?? []
    const restored = replicaOf(await startEtcd(snapshot), old.port, undefined, join(folder, 'data'))
    await restored.start()
    assert.equal(restored.ca, old.ca)
    assert.equal(restored.isFirst, false)
    await eventuallySlow('jane has a token', async () => {
      return (await restored.request('GET', '/v3/me', { token: jane })).status === 200
    })
    const login = (username: string): Promise<number> =>
      restored
        .request('POST', '/v3-public/login', { body: { username, password: PASSWORD } })
        .then(({ status }) => status)
    // The Lease of the leader before the backup must expire.
    await eventuallySlow('jane logs in', async () => (await login('jane')) === 200)
    assert.equal(await login('late'), 401, 'a user of after the backup does not exist')
    await eventuallySlow('the agent is back', async () => (await hello(restored)) === 200)
  })

  it('lets a second replica join with the token that the backup contains', async () => {
    const [datastore = ''] = etcds[0]?.urls ?? []
    const token = await readFile(join(folder, 'data', 'replica-token'), 'utf8')
    const second = replicaOf(datastore, await freePort(), token.trim())
    await second.start()
    assert.equal(second.ca, old.ca)
    await eventuallySlow('jane has a token', async () => {
      return (await second.request('GET', '/v3/me', { token: jane })).status === 200
    })
  })
})
