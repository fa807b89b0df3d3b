/** Tests the etcd backend against misbehaving etcd members, which are scripted. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'

import {
  Auth,
  KV,
  Lease,
  Maintenance,
  type RangeRequest,
  type RangeResponse,
  type TxnResponse,
  Watch,
  type WatchResponse,
} from '#apis/wire/etcd.ts'
import { createVirtualClock, realClock, sleep } from '#lib/clock.ts'
import { createGrpcServer, handleBidi, handleUnary, type Handler } from '#lib/grpc/server.ts'
import { GrpcError, type StatusName } from '#lib/grpc/status.ts'
import type { Input } from '#lib/protobuf/message.ts'
import { createSeededRandom } from '#lib/random.ts'

import { StorageError, type Backend, type StorageErrorCode, type WatchBatch } from '../backend.ts'
import { openEtcdBackend, type EtcdOptions } from '../etcd.ts'

interface Script {
  readonly id?: number
  /** The leader that it reports; itself by default. */
  leader?: number
  /** Its revision; 10 by default. */
  readonly now?: () => number
  /** It has lost a read and answers no other one, as etcd 3.4 does around an election. */
  isDeaf?: boolean
  readonly range?: (request: RangeRequest, call: number) => Input<RangeResponse>
  readonly txn?: (call: number) => Input<TxnResponse>
  /** The messages of the n-th watch before it falls silent; an error ends it. */
  readonly watch?: (from: number, call: number) => (Input<WatchResponse> | GrpcError)[]
  readonly more?: readonly Handler[]
}

interface FakeMember {
  readonly url: string
  readonly calls: { proof: number; range: number; txn: number; watch: number }
}

const REVISION = 10
const header = (revision = REVISION): { revision: number; memberId: number } => ({ revision, memberId: 1 })

async function startMember(t: TestContext, script: Script): Promise<FakeMember> {
  const calls = { proof: 0, range: 0, txn: 0, watch: 0 }
  const id = script.id ?? 1
  const handlers = [
    handleUnary(Maintenance.status, () => ({
      header: { memberId: id, revision: REVISION },
      leader: script.leader ?? id,
      version: '3.4.23',
    })),
    handleUnary(KV.range, (request) => {
      // The read that proves a working member, and that requests the current revision.
      calls.proof++
      if (script.isDeaf) return new Promise<never>(() => undefined)
      if (request.key === '\0' && request.countOnly) return { header: header(script.now?.()) }
      calls.range++
      return script.range?.(request, calls.range) ?? { header: header() }
    }),
    handleUnary(KV.txn, () => {
      calls.txn++
      return script.txn?.(calls.txn) ?? { header: header(), succeeded: true, responses: [] }
    }),
    handleBidi(Watch.watch, async function* (requests, { signal }) {
      for await (const { createRequest } of requests) {
        yield { header: header(), created: true }
        calls.watch++
        for (const one of script.watch?.(Number(createRequest?.startRevision), calls.watch) ?? []) {
          if (one instanceof GrpcError) throw one
          yield one
        }
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      }
    }),
    ...(script.more ?? []),
  ]
  const server = createGrpcServer({ handlers, clock: realClock })
  const bound = await server.listen({ host: '127.0.0.1', port: 0 })
  t.after(() => server.stop(0))
  return { url: `http://127.0.0.1:${'port' in bound ? bound.port : 0}`, calls }
}

async function open(
  t: TestContext,
  members: readonly FakeMember[],
  options: Partial<EtcdOptions> = {},
): Promise<Backend> {
  const urls = members.map((member) => member.url)
  const backend = await openEtcdBackend(urls, { clock: realClock, random: createSeededRandom(1), ...options })
  t.after(() => backend.close())
  return backend
}

const failure = (code: StatusName, message: string): never => {
  throw new GrpcError(code, message)
}

const failsWith =
  (code: StorageErrorCode, message = /./) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof StorageError, String(error))
    assert.equal(error.code, code, error.message)
    assert.match(error.message, message)
    return true
  }

const WRITE = [{ key: 'a', value: Buffer.from('1') }]

describe('etcd backend', () => {
  const texts: [StorageErrorCode, StatusName, string][] = [
    ['no-space', 'resourceExhausted', 'etcdserver: mvcc: database space exceeded'],
    ['too-large', 'invalidArgument', 'etcdserver: request is too large'],
    ['too-large', 'invalidArgument', 'etcdserver: too many operations in txn request'],
    ['too-large', 'resourceExhausted', 'grpc: received message larger than max (3000000 vs. 2097152)'],
    ['lease-not-found', 'notFound', 'etcdserver: requested lease not found'],
    ['corrupt', 'dataLoss', 'etcdserver: corrupt cluster'],
    ['timeout', 'unavailable', 'etcdserver: request timed out'],
    ['timeout', 'unavailable', 'etcdserver: request timed out, possibly due to previous leader failure'],
    ['unavailable', 'unavailable', 'etcdserver: leader changed'],
    ['unavailable', 'permissionDenied', 'etcdserver: permission denied'],
    ['unavailable', 'unavailable', 'something new'],
  ]
  for (const [code, status, text] of texts) {
    it(`reports "${text}" as ${code}, and sends the write once`, async (t) => {
      const member = await startMember(t, { txn: () => failure(status, text) })
      const backend = await open(t, [member])
      await assert.rejects(backend.commit(WRITE), failsWith(code))
      assert.equal(member.calls.txn, 1)
    })
  }

  for (const text of ['etcdserver: no leader', 'etcdserver: too many requests', 'raft proposal dropped']) {
    it(`sends a write again after "${text}", because etcd executed nothing`, async (t) => {
      const answer = { header: header(11), succeeded: true, responses: [{ responsePut: {} }] }
      const txn = (call: number): typeof answer => (call < 3 ? failure('unavailable', text) : answer)
      const member = await startMember(t, { txn })
      const backend = await open(t, [member])
      assert.deepEqual(await backend.commit(WRITE), { ok: true, revision: 11, previous: [undefined] })
      assert.equal(member.calls.txn, 3)
    })
  }

  it('retries a read after any failure', async (t) => {
    const texts = ['etcdserver: leader changed', 'etcdserver: request timed out', 'etcdserver: server stopped']
    const range = (_: unknown, call: number): Input<RangeResponse> => {
      const text = texts[call - 1]
      return text === undefined ? { header: header(), count: 0 } : failure('unavailable', text)
    }
    const member = await startMember(t, { range })
    const backend = await open(t, [member])
    assert.equal((await backend.range({ start: 'a' })).revision, REVISION)
    assert.equal(member.calls.range, texts.length + 1)
  })

  it('rejects a read response that is older than a known revision', async (t) => {
    const revisions = [20, 15, 21]
    const member = await startMember(t, {
      range: (_, call) => ({ header: header(revisions[call - 1] ?? 21), count: 0 }),
    })
    const backend = await open(t, [member])
    assert.equal((await backend.range({ start: 'a' })).revision, 20)
    assert.equal((await backend.range({ start: 'a' })).revision, 21)
    assert.equal(member.calls.range, 3)
  })

  it('reports an error if the revision of a write is lower than an earlier one', async (t) => {
    const revisions = [20, 15]
    const txn = (call: number): Input<TxnResponse> => ({ header: header(revisions[call - 1] ?? 0), succeeded: true })
    const backend = await open(t, [await startMember(t, { txn })])
    await backend.commit(WRITE)
    await assert.rejects(backend.commit(WRITE), failsWith('corrupt', /went back from revision 20 to 15/))
  })

  it('sends all requests to the leader', async (t) => {
    const follower = await startMember(t, { id: 1, leader: 2 })
    const leader = await startMember(t, { id: 2, leader: 2 })
    const other = await startMember(t, { id: 3, leader: 2 })
    const backend = await open(t, [follower, leader, other])
    for (let n = 0; n < 5; n++) await backend.commit(WRITE)
    assert.deepEqual([follower.calls.txn, leader.calls.txn, other.calls.txn], [0, 5, 0])
  })

  it('uses another member if the leader does not answer reads', async (t) => {
    const leader = await startMember(t, { id: 1, isDeaf: true })
    const follower = await startMember(t, { id: 2, leader: 1 })
    const backend = await open(t, [leader, follower])
    await backend.commit(WRITE)
    assert.deepEqual([leader.calls.txn, follower.calls.txn], [0, 1])
  })

  it('uses a new leader once it answers', async (t) => {
    const clock = createVirtualClock()
    const scripts: [Script, Script] = [{ id: 1 }, { id: 2, leader: 1 }]
    const first = await startMember(t, scripts[0])
    const second = await startMember(t, scripts[1])
    const backend = await open(t, [first, second], { clock })
    await backend.commit(WRITE)
    for (const script of scripts) script.leader = 2
    scripts[1].isDeaf = true
    const review = async (): Promise<void> => {
      const before = second.calls.proof
      await clock.advance(10_000)
      for (let n = 0; n < 1000 && second.calls.proof === before; n++) await sleep(realClock, 5)
      await clock.advance(1000)
      await sleep(realClock, 50)
    }
    await review()
    await backend.commit(WRITE)
    assert.deepEqual([first.calls.txn, second.calls.txn], [2, 0])
    scripts[1].isDeaf = false
    await review()
    await backend.commit(WRITE)
    assert.deepEqual([first.calls.txn, second.calls.txn], [2, 1])
  })

  it('names the unresponsive members if none answers', async () => {
    const url = 'http://127.0.0.1:1'
    await assert.rejects(
      openEtcdBackend([url, url], { clock: realClock, random: createSeededRandom(1), timeoutMs: 200 }),
      failsWith('unavailable', /No answer from etcd at 127\.0\.0\.1:1, 127\.0\.0\.1:1: .*ECONNREFUSED/),
    )
  })

  it('rejects invalid member URLs', async () => {
    const options = { clock: realClock, random: createSeededRandom(1) }
    for (const url of ['', 'etcd:2379', 'ftp://a', 'http://a/b', 'http://user:secret@a']) {
      await assert.rejects(openEtcdBackend([url], options), (error: Error) => {
        assert.ok(error instanceof TypeError)
        assert.ok(!error.message.includes('secret'))
        return true
      })
    }
  })

  it('requests a new token if etcd rejects the old one', async (t) => {
    let tokens = 0
    const member = await startMember(t, {
      more: [handleUnary(Auth.authenticate, ({ name, password }) => ({ token: `${name}:${password}:${++tokens}` }))],
      txn: (call) =>
        call === 1
          ? failure('unauthenticated', 'etcdserver: invalid auth token')
          : { header: header(), succeeded: true },
    })
    const backend = await open(t, [member], { credentials: { user: 'u', password: 'p' } })
    await backend.commit(WRITE)
    assert.deepEqual([member.calls.txn, tokens], [2, 2])
  })

  it('treats an existing or missing lease on a retry as the result of its first attempt', async (t) => {
    let [grants, revokes] = [0, 0]
    const member = await startMember(t, {
      more: [
        handleUnary(Lease.leaseGrant, () =>
          ++grants === 1
            ? failure('unavailable', 'etcdserver: request timed out')
            : failure('failedPrecondition', 'etcdserver: lease already exists'),
        ),
        handleUnary(Lease.leaseRevoke, () =>
          ++revokes === 1
            ? failure('unavailable', 'etcdserver: request timed out')
            : failure('notFound', 'etcdserver: requested lease not found'),
        ),
      ],
    })
    const backend = await open(t, [member])
    const lease = await backend.grantLease(1000)
    await backend.revokeLease(lease)
    await assert.rejects(backend.revokeLease(lease), failsWith('lease-not-found'))
  })
})

describe('etcd watch', () => {
  const put = (key: string, revision: number): NonNullable<Input<WatchResponse>['events']>[number] => ({
    kv: { key, createRevision: revision, modRevision: revision, value: Buffer.from(key) },
  })
  const events = (...list: [string, number][]): Input<WatchResponse> => ({
    events: list.map(([key, revision]) => put(key, revision)),
  })
  const lost = new GrpcError('unavailable', 'etcdserver: no leader')

  /** Reads until this many events have arrived. */
  const read = async (backend: Backend, count: number, from = 11): Promise<string[]> => {
    const seen: string[] = []
    const stop = new AbortController()
    const batches: AsyncIterable<WatchBatch> = backend.watch({ start: 'a', end: 'z', from, signal: stop.signal })
    for await (const batch of batches) {
      seen.push(...batch.events.map((event) => `${event.key}${event.modRevision}`))
      if (seen.length >= count) stop.abort()
    }
    return seen
  }

  it('resumes after a lost stream without gap or repetition', async (t) => {
    const from: number[] = []
    const member = await startMember(t, {
      watch(start, call) {
        from.push(start)
        if (call === 1) return [events(['a', 11], ['b', 12]), { ...events(['c', 13]), fragment: true }, lost]
        return [events(['a', 11], ['b', 12], ['c', 13], ['d', 13]), events(['e', 14])]
      },
    })
    const backend = await open(t, [member])
    assert.deepEqual(await read(backend, 5), ['a11', 'b12', 'c13', 'd13', 'e14'])
    assert.deepEqual(from, [11, 13])
  })

  it('reads the stream again from a revision that is missing in it', async (t) => {
    const member = await startMember(t, {
      watch: (_, call) => (call === 1 ? [events(['a', 11]), events(['c', 13])] : [events(['b', 12], ['c', 13])]),
    })
    assert.deepEqual(await read(await open(t, [member]), 3), ['a11', 'b12', 'c13'])
    assert.equal(member.calls.watch, 2)
  })

  it('ends with `compacted` if a revision is unavailable, and the next watch starts normally', async (t) => {
    let now = 10
    const member = await startMember(t, {
      now: () => now,
      watch: (_, call) => (call < 3 ? [events(['a', 11]), events(['c', 13])] : [events(['a', 21], ['b', 22])]),
    })
    const backend = await open(t, [member])
    await assert.rejects(read(backend, 3), failsWith('compacted', /left out revision 12/))
    now = 20
    assert.deepEqual(await read(backend, 2, 21), ['a21', 'b22'])
  })

  it('ends with `compacted` if the requested revision is compacted, and reports the oldest one', async (t) => {
    const member = await startMember(t, { watch: () => [{ canceled: true, compactRevision: 40 }] })
    await assert.rejects(read(await open(t, [member]), 1), (error) => {
      assert.equal((error as StorageError).compactedRevision, 40)
      return failsWith('compacted')(error)
    })
  })

  it('ends with `compacted` if etcd splits a revision', async (t) => {
    const member = await startMember(t, { watch: () => [events(['a', 11]), events(['b', 11])] })
    await assert.rejects(read(await open(t, [member]), 2), failsWith('compacted', /split revision 11/))
  })

  it('opens another stream if a known revision does not arrive', async (t) => {
    const clock = createVirtualClock()
    const member = await startMember(t, {
      txn: () => ({ header: header(11), succeeded: true }),
      watch: (_, call) => (call === 1 ? [] : [events(['a', 11])]),
    })
    const backend = await open(t, [member], { clock })
    const reading = read(backend, 1)
    await backend.commit(WRITE)
    const state = { isOver: false }
    void reading.finally(() => (state.isOver = true))
    for (let n = 0; n < 100 && !state.isOver; n++) {
      await clock.advance(200)
      // The member's responses take real time.
      await sleep(realClock, 2)
    }
    assert.deepEqual(await reading, ['a11'])
    assert.equal(member.calls.watch, 2)
  })

  it('ends if etcd denies permission', async (t) => {
    const member = await startMember(t, {
      watch: () => [new GrpcError('permissionDenied', 'etcdserver: permission denied')],
    })
    await assert.rejects(read(await open(t, [member]), 1), failsWith('unavailable', /permission denied/))
  })
})
