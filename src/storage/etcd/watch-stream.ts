/** Watches a key range in etcd: one gRPC stream, and a watch that reopens lost streams. */
import { Watch, type WatchResponse } from '#apis/wire/etcd.ts'
import { createBackoff, type Backoff } from '#lib/backoff.ts'
import { sleep, type Clock } from '#lib/clock.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import type { Random } from '#lib/random.ts'

import { StorageError, type Revision, type WatchBatch } from '../backend.ts'
import { compactedError } from '../event-feed.ts'
import type { EtcdClient } from './client.ts'
import { classify, toStorageError } from './errors.ts'
import { Sequence, SequenceError } from './sequence.ts'

export interface WatchTools {
  readonly client: EtcdClient
  readonly clock: Clock
  readonly random: Random
  readonly log: (message: string) => void
}

export interface FollowOptions {
  readonly from: Revision
  /** Ends it. */
  readonly signal: AbortSignal
  /** Called for each opened stream with a function that ends it, so that another is opened. */
  readonly onOpen?: (reopen: () => void) => void
}

/** etcd's form of "from the first key to the last". */
const FIRST_KEY = '\0'
const NO_END = '\0'
const REOPEN = { baseMs: 20, factor: 2, capMs: 1000, jitter: 0.2 }

/**
 * Every change of the whole store from a revision on: whole revisions, in order, without a gap, over any number of lost
 * connections. Ends when the signal is aborted; fails with `compacted` if the changes are gone, and with `unavailable`
 * if etcd denies the watch.
 */
export async function* follow(
  tools: WatchTools,
  { from, signal, onOpen }: FollowOptions,
): AsyncGenerator<readonly WatchBatch[], void, undefined> {
  const sequence = new Sequence(from)
  const backoff = createBackoff(tools.random, REOPEN)
  let gapAt: Revision | undefined
  while (!signal.aborted) {
    try {
      const range = { key: FIRST_KEY, rangeEnd: NO_END, from: sequence.next }
      const responses = openWatch(tools.client, range, { signal, ...(onOpen && { onOpen }) })
      for await (const batches of inSequence(responses, sequence)) {
        backoff.reset()
        yield batches
      }
    } catch (error) {
      if (signal.aborted) return
      const isSameGap = error instanceof SequenceError && error.fault === 'gap' && gapAt === sequence.next
      gapAt = sequence.next
      rethrowIfFinal(error, isSameGap)
      await pauseBeforeReopen(tools, backoff, { error, signal })
    }
    sequence.reopen()
  }
}

async function* inSequence(
  responses: AsyncIterable<WatchResponse>,
  sequence: Sequence,
): AsyncGenerator<readonly WatchBatch[], void, undefined> {
  for await (const response of responses) {
    const { batches, fault } = sequence.push(response)
    if (batches.length > 0) yield batches
    if (fault !== undefined) throw fault
  }
}

/** Rethrows errors that another stream would not fix, as errors for the caller. */
function rethrowIfFinal(error: unknown, isSameGap: boolean): void {
  if (error instanceof SequenceError) {
    // One stream may have dropped a change; if another lacks it too, it is gone.
    if (error.fault === 'older' || (error.fault === 'gap' && !isSameGap)) return
    const message = `${error.message}; read the current state and go on from there`
    throw new StorageError('compacted', message, { cause: error, compactedRevision: error.resumeAt })
  }
  if (!(error instanceof GrpcError)) throw error
  if (classify(error).outcome === 'final') throw toStorageError(error, { isWrite: false })
}

async function pauseBeforeReopen(
  { clock, log }: WatchTools,
  backoff: Backoff,
  { error, signal }: { readonly error: unknown; readonly signal: AbortSignal },
): Promise<void> {
  const reason = error instanceof Error ? error.message : String(error)
  if (backoff.attempts === 0) log(`The watch of etcd is opened again: ${reason}`)
  // The loop sees an abort during the wait.
  await sleep(clock, backoff.next(), signal).catch(() => undefined)
}

interface WatchRange {
  readonly key: string
  readonly rangeEnd: string
  readonly from: Revision
}

/** One stream with one watch. Fails with `GrpcError`, or `compacted`. */
async function* openWatch(
  client: EtcdClient,
  { key, rangeEnd, from }: WatchRange,
  { signal, onOpen }: Pick<FollowOptions, 'signal' | 'onOpen'>,
): AsyncGenerator<WatchResponse, void, undefined> {
  const stream = await client.stream(Watch.watch, signal)
  onOpen?.(() => stream.cancel())
  try {
    await stream.send({ createRequest: { key, rangeEnd, startRevision: from, prevKv: true, fragment: true } })
    for await (const response of stream.responses) {
      stream.member.noteAnswer()
      if (Number(response.compactRevision) > 0) throw compactedError(from, Number(response.compactRevision))
      if (response.canceled) throw new GrpcError('unavailable', `etcd ended the watch: ${response.cancelReason}`)
      yield response
    }
    throw new GrpcError('unavailable', 'etcd ended the watch')
  } catch (error) {
    client.suspect(stream.member, error)
    throw error
  } finally {
    stream.cancel()
    stream.release()
  }
}

/** etcd refuses a watch within a few of its rounds over lagging watches, one per 100 ms. */
const REFUSAL_MS = 2000

/**
 * The oldest revision that etcd keeps, given one that it has just refused; only a watch reports it. Undefined if it is
 * unknown.
 */
export async function askCompactedRevision(
  { client, clock }: Pick<WatchTools, 'client' | 'clock'>,
  refused: Revision,
): Promise<Revision | undefined> {
  const limit = new AbortController()
  const timer = clock.after(REFUSAL_MS, () => limit.abort())
  try {
    const range = { key: FIRST_KEY, rangeEnd: '', from: Math.max(1, refused) }
    for await (const response of openWatch(client, range, { signal: limit.signal })) void response
    return undefined
  } catch (error) {
    return error instanceof StorageError ? error.compactedRevision : undefined
  } finally {
    timer.cancel()
  }
}
