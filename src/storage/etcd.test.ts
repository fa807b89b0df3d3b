import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it, type TestContext } from 'node:test'

import { realClock, sleep } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'

import { backendSuite } from './backend.suite.ts'
import { prefixEnd, StorageError, type Backend, type Revision, type StorageErrorCode } from './backend.ts'
import { openEtcdBackend, type EtcdOptions } from './etcd.ts'
import {
  startCluster,
  whyNoEtcd,
  whyNoEtcdctl,
  type ClusterOptions,
  type TestCluster,
} from './etcd/etcd-cluster.fixture.ts'
import { openBackend } from './index.ts'

const TOOLS = { clock: realClock, random: secureRandom }
const OPTIONS = { ...TOOLS, historyMs: Infinity, progressEveryMs: 200 }
const ALL = { start: '/', end: prefixEnd('/') }

const bytes = (text: string): Uint8Array => Buffer.from(text)

function open(cluster: TestCluster, options: Partial<EtcdOptions> = {}): Promise<Backend> {
  return openEtcdBackend(cluster.urls, { ...OPTIONS, ...options })
}

function suiteOn(members: number): void {
  let cluster: TestCluster
  let shared: Backend
  before(async () => {
    cluster = await startCluster({ members })
    shared = await open(cluster)
  })
  after(async () => {
    await shared.close()
    await cluster.stop()
  })
  const restored = async (t: TestContext, snapshot: string): Promise<Backend> => {
    const other = await startCluster({ snapshot })
    t.after(() => other.stop())
    return open(other)
  }
  backendSuite(`etcd with ${members} member${members > 1 ? 's' : ''}`, async (t, { isOwn }) => ({
    backend: isOwn ? await open(cluster) : shared,
    ...(!isOwn && { release: async () => undefined }),
    pass: (ms) => sleep(realClock, ms),
    // etcd has no shorter lease with an election timeout of 1 s.
    ttlMs: 2000,
    progressMs: 1000,
    ...(whyNoEtcdctl() === undefined && { openSnapshot: (file: string) => restored(t, file) }),
  }))
}

/** A cluster and a backend for one test. */
async function start(
  t: TestContext,
  cluster: ClusterOptions = {},
  options: Partial<EtcdOptions> = {},
): Promise<{ cluster: TestCluster; backend: Backend }> {
  const started = await startCluster(cluster)
  t.after(() => started.stop())
  const backend = await open(started, { ...(cluster.tls && { tls: cluster.tls }), ...options })
  t.after(() => backend.close())
  return { cluster: started, backend }
}

async function fails(promise: Promise<unknown>, code: StorageErrorCode, message = /./): Promise<void> {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof StorageError, String(error))
    assert.equal(error.code, code, error.message)
    assert.match(error.message, message)
    return true
  })
}

/** Writers that continue during faults, and a watch of their keys. */
interface Traffic {
  /** Waits for this many more acknowledged writes. */
  more(count: number): Promise<void>
  /**
   * Ends it and checks that no acknowledged write is lost, and that the watch delivered all events once and in order.
   */
  check(backend: Backend): Promise<void>
}

function startTraffic(backend: Backend): Traffic {
  const acknowledged = new Map<string, Revision>()
  const seen: [string, Revision][] = []
  const stop = new AbortController()
  const state = { on: true }
  const write = async (writer: number): Promise<void> => {
    for (let n = 0; state.on; n++) {
      const key = `/traffic/${writer}/${n}`
      try {
        const result = await backend.commit([{ key, value: bytes(key), expected: 0 }])
        if (result.ok) acknowledged.set(key, result.revision)
      } catch (error) {
        // During the fault the result of this one is unknown.
        assert.ok(error instanceof StorageError && ['unavailable', 'timeout'].includes(error.code), String(error))
      }
      await sleep(realClock, 2)
    }
  }
  const watch = async (): Promise<void> => {
    for await (const { events } of backend.watch({ ...ALL, from: 1, signal: stop.signal })) {
      seen.push(...events.map((event): [string, Revision] => [event.key, event.modRevision]))
    }
  }
  const ended = [watch(), ...[0, 1, 2].map(write)]
  return {
    async more(count) {
      const wanted = acknowledged.size + count
      while (acknowledged.size < wanted) await sleep(realClock, 5)
    },
    async check(backend) {
      state.on = false
      await Promise.all(ended.slice(1))
      const { items } = await backend.range(ALL)
      const there = new Map(items.map((item) => [item.key, item.modRevision]))
      for (const [key, revision] of acknowledged) assert.equal(there.get(key), revision, `${key} is kept`)
      while (seen.length < items.length) await sleep(realClock, 5)
      stop.abort()
      await ended[0]
      const inOrder = items.map((item): [string, Revision] => [item.key, item.modRevision]).sort((a, b) => a[1] - b[1])
      assert.deepEqual(seen, inOrder)
    },
  }
}

function faultTests(): void {
  it('loses no commit and ends no watch when the leader is killed', async (t) => {
    const { cluster, backend } = await start(t, { members: 3 })
    const traffic = startTraffic(backend)
    for (let n = 0; n < 2; n++) {
      await traffic.more(50)
      const leader = await cluster.leader()
      await leader.kill()
      await traffic.more(50)
      await leader.start()
      await cluster.healthy()
    }
    await traffic.check(backend)
  })

  it('works while the leader is paused, and after its return', async (t) => {
    const { cluster, backend } = await start(t, { members: 3 })
    const traffic = startTraffic(backend)
    await traffic.more(50)
    const leader = await cluster.leader()
    leader.pause()
    await traffic.more(50)
    leader.resume()
    await traffic.more(50)
    await traffic.check(backend)
  })

  it('fails with a message while the majority of members is unavailable, and then continues', async (t) => {
    const { cluster, backend } = await start(t, { members: 3 }, { timeoutMs: 1500 })
    await backend.commit([{ key: '/a', value: bytes('1') }])
    const [first, second] = cluster.members
    await Promise.all([first!.kill(), second!.kill()])
    await assert.rejects(backend.commit([{ key: '/a', value: bytes('2') }]), StorageError)
    const { ok, message } = await backend.health()
    assert.ok(!ok && message !== '')
    await Promise.all([first!.start(), second!.start()])
    await cluster.healthy()
    assert.ok((await backend.commit([{ key: '/b', value: bytes('1') }])).ok)
    // Connections to recovered members are made one after the other, each after a separate wait.
    let health = await backend.health()
    for (let tries = 0; tries < 100 && health.message !== ''; tries++) {
      await sleep(realClock, 100)
      health = await backend.health()
    }
    assert.deepEqual([health.ok, health.message], [true, ''])
  })

  it('names missing members while it works without them', async (t) => {
    const { cluster, backend } = await start(t, { members: 3 })
    const leader = await cluster.leader()
    await cluster.members.find((member) => member !== leader)!.kill()
    const { ok, message } = await backend.health()
    assert.deepEqual([ok, message], [true, '1 of 3 etcd members do not answer; see to them'])
  })

  it('works again after a restart of the only member', async (t) => {
    const { cluster, backend } = await start(t)
    const traffic = startTraffic(backend)
    await traffic.more(50)
    await cluster.members[0]!.kill()
    await cluster.members[0]!.start()
    await traffic.more(50)
    await traffic.check(backend)
  })
}

function limitTests(): void {
  it('reads and deletes if the etcd quota is exceeded, and rejects writes', async (t) => {
    const { backend } = await start(t, { flags: ['--quota-backend-bytes', String(2 << 20)] })
    const value = new Uint8Array(200_000)
    let full: unknown
    let written = 0
    while (full === undefined && written < 100) {
      const key = `/k/${String(written++).padStart(3, '0')}`
      full = await backend.commit([{ key, value }]).then(
        () => undefined,
        (error: unknown) => error,
      )
    }
    assert.ok(full instanceof StorageError && full.code === 'no-space', String(full))
    await fails(backend.commit([{ key: '/k/x', value: bytes('1') }]), 'no-space', /alarm disarm/)
    assert.ok((await backend.range(ALL)).count > 0)
    assert.ok((await backend.commit([{ key: '/k/000', value: null }])).ok)
    assert.equal((await backend.range({ start: '/k/000' })).count, 0)
    const { ok, message } = await backend.health()
    assert.ok(!ok)
    assert.match(message, /NOSPACE.*writes are refused/)
  })

  it('rejects values that are too large, and reads a long list in pages of one snapshot', async (t) => {
    const { backend } = await start(t)
    await fails(backend.commit([{ key: '/a', value: new Uint8Array(3 << 20) }]), 'too-large')
    const many = Array.from({ length: 129 }, (_, n) => ({ key: `/m/${n}`, value: bytes('1') }))
    await fails(backend.commit(many), 'too-large')
    assert.equal((await backend.range(ALL)).count, 0)
    const names = Array.from({ length: 1200 }, (_, n) => `/k/${String(n).padStart(4, '0')}`)
    for (let at = 0; at < names.length; at += 100) {
      await backend.commit(names.slice(at, at + 100).map((key) => ({ key, value: bytes(key) })))
    }
    const reading = backend.range(ALL)
    const writing = Promise.all(names.slice(0, 50).map((key) => backend.commit([{ key, value: bytes('new') }])))
    const [picture] = await Promise.all([reading, writing])
    assert.deepEqual(
      picture.items.map((item) => item.key),
      names,
    )
    assert.ok(picture.items.every((item) => item.modRevision <= picture.revision))
    const part = await backend.range({ ...ALL, limit: 700, keysOnly: true })
    assert.deepEqual([part.items.length, part.more, part.count], [700, true, 1200])
    assert.ok(part.items.every((item) => item.value.length === 0))
  })
}

function accessTests(): void {
  it('uses mutual TLS, and rejects peers without it', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'etcd-tls-'))
    t.after(() => rm(folder, { recursive: true }))
    const authority = createAuthority({ commonName: 'etcd-ca' }, TOOLS)
    const server = authority.issue({ commonName: 'etcd', purpose: 'peer', names: { ips: ['127.0.0.1'] } })
    const client = authority.issue({ commonName: 'kube-apiserver', purpose: 'client' })
    const files = { 'ca.crt': authority.certificatePem, 'etcd.crt': server.certificatePem, 'etcd.key': server.keyPem }
    for (const [name, pem] of Object.entries(files)) await writeFile(join(folder, name), pem, { mode: 0o600 })
    const paths = { 'trusted-ca-file': 'ca.crt', 'cert-file': 'etcd.crt', 'key-file': 'etcd.key' }
    const given = Object.entries(paths).flatMap(([flag, name]) => [`--${flag}`, join(folder, name)])
    const flags = ['--client-cert-auth', ...given]
    const tls = { ca: authority.certificatePem, certificate: client.certificatePem, key: client.keyPem }
    const { cluster, backend } = await start(t, { flags, tls })
    await backend.commit([{ key: '/a', value: bytes('1') }])
    assert.equal((await backend.range(ALL)).count, 1)
    const short = { ...OPTIONS, timeoutMs: 500 }
    await fails(openEtcdBackend(cluster.urls, { ...short, tls: { ca: tls.ca } }), 'unavailable')
    await fails(openEtcdBackend(cluster.urls, short), 'unavailable', /certificate/)
    const chosen = await openBackend(cluster.urls.join(','), { ...TOOLS, etcd: { tls } })
    assert.equal(chosen.name, 'etcd')
    await chosen.close()
  })

  it('authenticates by password, and again when its token expires', { skip: whyNoEtcdctl() ?? false }, async (t) => {
    const { cluster, backend: before } = await start(t)
    const etcdctl = (...words: string[]): void =>
      void execFileSync('etcdctl', ['--endpoints', cluster.urls.join(','), ...words], {
        env: { ...process.env, ETCDCTL_API: '3' },
        stdio: 'pipe',
      })
    await before.close()
    etcdctl('user', 'add', 'root:secret')
    etcdctl('user', 'grant-role', 'root', 'root')
    etcdctl('auth', 'enable')
    const short = { ...OPTIONS, timeoutMs: 2000 }
    await fails(openEtcdBackend(cluster.urls, short), 'unavailable', /user name is empty/)
    const wrong = { user: 'root', password: 'guess' }
    await fails(openEtcdBackend(cluster.urls, { ...short, credentials: wrong }), 'unavailable', /invalid user ID/)
    const backend = await open(cluster, { credentials: { user: 'root', password: 'secret' } })
    t.after(() => backend.close())
    const traffic = startTraffic(backend)
    await traffic.more(20)
    // The member drops its tokens.
    await cluster.members[0]!.stop()
    await cluster.members[0]!.start()
    await traffic.more(20)
    await traffic.check(backend)
  })
}

const missing = whyNoEtcd()
describe('storage backend on a real etcd', { skip: missing ?? false, concurrency: 2 }, () => {
  // One test compacts what another would still read: tests of one store run one after the other.
  describe('with one member', { concurrency: 1 }, () => suiteOn(1))
  describe('with three members', { concurrency: 1 }, () => suiteOn(3))
  describe('with failures', { concurrency: 1, timeout: 120_000 }, faultTests)
  describe('at its limits', { concurrency: 1, timeout: 60_000 }, limitTests)
  describe('with authentication', { concurrency: 1, timeout: 60_000 }, accessTests)
})
