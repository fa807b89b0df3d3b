import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, it, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'

import { type Outcome, runProgram } from '#kits/cmd/run-program.ts'
import { createVirtualClock, realClock, sleep } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { prefixEnd, StorageError, type Backend, type Revision } from '#storage/backend.ts'
import { openEtcdBackend } from '#storage/etcd.ts'
import { startCluster, whyNoEtcd } from '#storage/etcd/etcd-cluster.fixture.ts'
import { openSqliteBackend } from '#storage/sqlite.ts'
import { restoreSqlite } from '#storage/sqlite/restore.ts'

import { snapshot } from './snapshot.ts'

const ALL = { start: '', end: prefixEnd('') }

interface Bench {
  readonly folder: string
  readonly file: string
  readonly open: (file?: string) => Promise<Backend>
  /** Runs `hyperkube snapshot …` on the folder. */
  readonly run: (command: string, ...args: string[]) => Promise<Outcome>
}

async function createBench(t: TestContext): Promise<Bench> {
  const folder = await mkdtemp(join(tmpdir(), 'snapshot-test-'))
  const file = join(folder, 'store.db')
  const stores: Backend[] = []
  t.after(async () => {
    for (const store of stores) await store.close()
    await rm(folder, { recursive: true })
  })
  const { signal } = new AbortController()
  return {
    folder,
    file,
    async open(path = file) {
      const store = await openSqliteBackend(path, {
        clock: realClock,
        random: secureRandom,
        ballastBytes: 0,
        historyMs: Infinity,
      })
      stores.push(store)
      return store
    },
    run: (command, ...args) =>
      runProgram((context) => snapshot.run(context, signal), {
        path: ['hyperkube', 'snapshot'],
        args: [command, '--data-dir', folder, ...args],
        clock: createVirtualClock(),
        cwd: folder,
      }),
  }
}

async function put(store: Backend, key: string, value: string): Promise<Revision> {
  const { revision } = await store.commit([{ key, value: Buffer.from(value) }])
  return revision
}

async function texts(store: Backend): Promise<string[]> {
  const { items } = await store.range(ALL)
  return items.map(({ key, value }) => `${key}=${Buffer.from(value).toString()}`)
}

describe('hyperkube snapshot', () => {
  it('saves a store that a running server has open, and lists the snapshot', async (t) => {
    const { folder, open, run } = await createBench(t)
    const store = await open()
    const revision = await put(store, '/a', 'one')
    const saved = await run('save', 'first')
    assert.equal(saved.err, '')
    assert.match(
      saved.out,
      new RegExp(
        `^Saved snapshot "first" at revision ${revision} \\([\\d.]+ KiB\\) to ${folder}/snapshots/first.snapshot\n$`,
      ),
    )
    assert.equal(statSync(join(folder, 'snapshots', 'first.snapshot')).mode & 0o777, 0o600)
    await put(store, '/a', 'two')
    assert.equal((await run('save')).code, 0)
    const { out, code } = await run('list')
    assert.equal(code, 0)
    const lines = out.trimEnd().split('\n')
    assert.match(lines[0]!, /^NAME +STORE +REVISION +SIZE +TIME +CHECKSUM +STATE$/)
    assert.match(
      lines[1]!,
      /^2026-01-01T00-00-00.000Z +sqlite +2 +[\d.]+ KiB +2026-01-01T00:00:00.000Z +[0-9a-f]{12} +ok$/,
    )
    assert.match(lines[2]!, /^first +sqlite +1 /)
    const [, described] = JSON.parse((await run('list', '-o', 'json')).out) as {
      name: string
      revision: number
      sha256: string
    }[]
    assert.equal(described?.name, 'first')
    assert.match(described.sha256, /^[0-9a-f]{64}$/)
  })

  it('saves the store of a stopped server, even after a crash', async (t) => {
    const { folder, file, open, run } = await createBench(t)
    const store = await open()
    await put(store, '/a', 'one')
    await store.close()
    assert.equal((await run('save', 'closed')).code, 0)
    const again = await open()
    await put(again, '/a', 'two')
    // The files as a crash leaves them.
    for (const side of ['', '-wal']) writeFileSync(join(folder, `crashed.db${side}`), readFileSync(`${file}${side}`))
    const { err, out } = await run('save', 'crashed', '--datastore', 'sqlite:crashed.db')
    assert.equal(err, '')
    assert.match(out, /at revision 2 /)
  })

  it('restores a snapshot: keeps the old store, increases revisions, and makes watchers relist', async (t) => {
    const { folder, open, run } = await createBench(t)
    const before = await open()
    await put(before, '/a', 'one')
    assert.equal((await run('save', 'good')).code, 0)
    const last = await put(before, '/a', 'bad')
    const inUse = await run('restore', 'good')
    assert.equal(inUse.code, 1)
    assert.match(inUse.err, /^Error: ".*store.db" is in use by process \d+; stop it/)
    await before.close()
    const restored = await run('restore', 'good')
    assert.equal(restored.err, '')
    assert.match(
      restored.out,
      /^Restored "good" to .*store.db; revisions continue from \d+\nThe old state is in .*store\.db\.before-2026-01-01T00-00-00.000Z; /,
    )
    const after = await open()
    assert.deepEqual(await texts(after), ['/a=one'])
    assert.ok((await after.currentRevision()) > last)
    const compacted = (error: unknown): boolean => error instanceof StorageError && error.code === 'compacted'
    for (const from of [1, last + 1]) {
      const { signal } = new AbortController()
      await assert.rejects(async () => {
        for await (const batch of after.watch({ ...ALL, from, signal })) assert.fail(`got ${batch.revision}`)
      }, compacted)
    }
    const kept = await open(join(folder, 'store.db.before-2026-01-01T00-00-00.000Z'))
    assert.deepEqual(await texts(kept), ['/a=bad'])
    assert.equal(existsSync(join(folder, 'store.db.restored')), false)
  })

  it('continues with revisions above that of the replaced store', async (t) => {
    const { open, run, folder } = await createBench(t)
    const first = await open()
    await put(first, '/a', 'one')
    await run('save', 'old')
    await first.close()
    let revision = 0
    for (let n = 0; n < 3; n++) {
      assert.equal((await run('restore', 'old')).code, 0)
      const store = await open()
      const next = await store.currentRevision()
      assert.ok(next > revision, `${next} after ${revision}`)
      revision = next
      await store.close()
      rmSync(join(folder, 'store.db.before-2026-01-01T00-00-00.000Z'), { force: true })
    }
  })

  it('restores to an empty directory, and from a file at any path', async (t) => {
    const { folder, file, open, run } = await createBench(t)
    const store = await open()
    await put(store, '/a', 'one')
    await store.snapshot(join(folder, 'elsewhere.db'))
    await store.close()
    rmSync(file)
    const { code, out } = await run('restore', './elsewhere.db')
    assert.equal(code, 0)
    assert.doesNotMatch(out, /before/)
    assert.deepEqual(await texts(await open()), ['/a=one'])
  })

  it('reports a flipped bit in a snapshot and never restores it', async (t) => {
    const { folder, open, run } = await createBench(t)
    const store = await open()
    await put(store, '/a', 'one')
    await run('save', 'flipped')
    await run('save', 'unfinished')
    await store.close()
    const path = join(folder, 'snapshots', 'flipped.snapshot')
    const bytes = readFileSync(path)
    bytes[bytes.length >> 1]! ^= 1
    writeFileSync(path, bytes)
    rmSync(join(folder, 'snapshots', 'unfinished.snapshot.json'))
    const { code, out } = await run('list')
    assert.equal(code, 1)
    assert.match(out, /flipped .* Damaged: its contents are not what was saved/)
    assert.match(out, /unfinished .* Damaged: it has no description/)
    const { err } = await run('restore', 'flipped')
    assert.match(err, /^Error: Snapshot "flipped" is damaged: its contents are not what was saved; take another one\n$/)
    assert.deepEqual(await texts(await open()), ['/a=one'])
  })

  const mistakes: readonly (readonly [args: readonly [string, ...string[]], message: RegExp])[] = [
    [['save'], /^Error: There is no store in ".*store.db"; name another one\n$/],
    [['save', '../x'], /"..\/x" cannot be the name of a snapshot/],
    [['save', 'a', 'b'], /A snapshot has one name, not 2/],
    [['save', '--datastore', 'memory'], /only that process can save it/],
    [['save', '--datastore', 'mysql'], /"mysql" is not a store/],
    [['restore'], /Give the snapshot to restore/],
    [['restore', 'none'], /There is no snapshot in ".*none.snapshot"; name another one/],
    [['restore', 'x', '--datastore', 'http://127.0.0.1:1'], /etcdctl snapshot restore/],
  ]
  for (const [args, message] of mistakes) {
    it(`fails with an explanation for "${args.join(' ')}"`, async (t) => {
      const { run } = await createBench(t)
      const { code, err } = await run(...args)
      assert.equal(code, 1)
      assert.match(err, message)
    })
  }

  it('saves an etcd cluster', { skip: whyNoEtcd() ?? false, timeout: 60_000 }, async (t) => {
    const { run } = await createBench(t)
    const cluster = await startCluster()
    t.after(() => cluster.stop())
    const datastore = cluster.urls.join(',')
    const store = await openEtcdBackend(cluster.urls, { clock: realClock, random: secureRandom })
    const revision = await put(store, '/a', 'one')
    await store.close()
    const { out, err } = await run('save', 'cluster', '--datastore', datastore)
    assert.equal(err, '')
    assert.match(out, new RegExp(`^Saved snapshot "cluster" at revision ${revision} `))
    assert.match((await run('list')).out, /^cluster +etcd +\d+ .* ok$/m)
    assert.match((await run('restore', 'cluster')).err, /is of an etcd cluster; a sqlite store cannot take it/)
    const wrong = await run('save', '--datastore', datastore, '--etcd-cafile', 'none.pem')
    assert.match(wrong.err, /^Error: Cannot read --etcd-cafile "none.pem": /)
  })

  it('rejects the name of an existing snapshot', async (t) => {
    const { open, run } = await createBench(t)
    await put(await open(), '/a', 'one')
    await run('save', 'twice')
    assert.match((await run('save', 'twice')).err, /There is a snapshot "twice" already/)
  })
})

const WRITER = fileURLToPath(new URL('../../test/reliability/sqlite-writer.ts', import.meta.url))

describe('a snapshot of a busy store', () => {
  it('can be saved while another process writes to the store', { timeout: 60_000 }, async (t) => {
    const { folder, file, open, run } = await createBench(t)
    const writer = spawn(process.execPath, [WRITER, file, '8'], { stdio: ['ignore', 'pipe', 'inherit'] })
    const counters = new Map<string, number>()
    let lines = 0
    let first = ''
    try {
      for await (const line of createInterface({ input: writer.stdout })) {
        const [word, key = '', counter] = line.split(' ')
        if (word === 'ack') counters.set(key, Number(counter))
        if (++lines === 200) {
          first = (await run('save', 'live')).out
          break
        }
      }
    } finally {
      writer.kill('SIGKILL')
    }
    assert.match(first, /^Saved snapshot "live" at revision \d+/)
    restoreSqlite(join(folder, 'snapshots', 'live.snapshot'), join(folder, 'copy.db'))
    const { items } = await (await open(join(folder, 'copy.db'))).range(ALL)
    const found = new Map(items.map(({ key, value }) => [key, Number(Buffer.from(value).toString())]))
    for (const [key, counter] of counters)
      assert.ok(found.get(key)! >= counter, `${key} was acknowledged at ${counter}`)
  })

  it('is consistent at one revision and contains every write acknowledged before', { timeout: 60_000 }, async (t) => {
    const { folder, open, run } = await createBench(t)
    const store = await open()
    const PAIRS = 8
    const acknowledged = new Map<number, number>()
    const over = new AbortController()
    const write = async (pair: number): Promise<void> => {
      for (let count = 1; !over.signal.aborted; count++) {
        const value = Buffer.from(String(count).padEnd(500))
        const keys = [`/left/${pair}`, `/right/${pair}`]
        await store.commit(keys.map((key) => ({ key, value })))
        acknowledged.set(pair, count)
      }
    }
    const writers = Array.from({ length: PAIRS }, (_, pair) => write(pair))
    // A new store has a revision but no object at it.
    while (acknowledged.size < PAIRS) await sleep(realClock, 5)
    for (let n = 0; n < 5; n++) {
      await sleep(realClock, 30)
      const known = new Map(acknowledged)
      const { code, err } = await run('save', `s${n}`)
      assert.equal(code, 0, err)
      const copy = join(folder, `copy${n}.db`)
      restoreSqlite(join(folder, 'snapshots', `s${n}.snapshot`), copy)
      const restored = await open(copy)
      const { items } = await restored.range(ALL)
      const counts = new Map(items.map(({ key, value }) => [key, Number(Buffer.from(value).toString())]))
      for (const [pair, count] of known) {
        assert.equal(counts.get(`/left/${pair}`), counts.get(`/right/${pair}`), 'both of a commit, or none')
        assert.ok(counts.get(`/left/${pair}`)! >= count, 'what was acknowledged before is there')
      }
      const { revision } = JSON.parse(readFileSync(join(folder, 'snapshots', `s${n}.snapshot.json`), 'utf8')) as {
        revision: number
      }
      assert.equal(Math.max(...items.map(({ modRevision }) => modRevision)), revision, 'it is the revision it says')
    }
    over.abort()
    await Promise.all(writers)
  })
})
