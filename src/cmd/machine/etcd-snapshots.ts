/**
 * `hyperkube machine etcd-snapshots`: takes snapshots of the local etcd member, once or periodically. Snapshots outlive
 * the cluster: the builder never deletes their folder.
 */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'

import { sleep } from '#lib/clock.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, int, string } from '#lib/flags/kinds.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'
import { defineProgram, type Program, type ProgramContext, ProgramError } from '#lib/program.ts'
import { copySnapshot, deleteCopies, fetchSnapshot, listCopies } from '#provision/apply/snapshot-copies.ts'
import { dueInMs, outdated, recurringName } from '#provision/plan/snapshot-schedule.ts'
import { Bucket, type BucketLocation } from '#provision/s3/bucket.ts'
import { listSnapshots, saveSnapshot } from '#storage/snapshot/snapshot.ts'

/** The pause after a failure. */
const AGAIN_MS = 60_000
const ENDINGS = ['.snapshot', '.snapshot.json', '.rkestate']

interface SnapshotFlags {
  readonly folder: string
  readonly endpoint: string
  readonly cacert: string
  readonly cert: string
  readonly key: string
  readonly timeout: number
}

export const etcdSnapshots: Program = defineProgram({
  name: 'etcd-snapshots',
  long: 'etcd-snapshots takes snapshots of an etcd member: one with --name, or one every --interval.',
  flags: {
    snapshots: {
      folder: flag(string, '/opt/rke/etcd-snapshots', '`folder` of the snapshots'),
      endpoint: flag(string, 'https://127.0.0.1:2379', 'URL of the member'),
      cacert: flag(string, '', 'certificate authority of the member, as PEM `file`'),
      cert: flag(string, '', 'client certificate, as PEM `file`'),
      key: flag(string, '', 'client key, as PEM `file`'),
      timeout: flag(duration, 300_000, 'time limit of a snapshot'),
      name: flag(string, '', 'take one snapshot with this name'),
      'with-state': flag(bool, false, 'store standard input beside the snapshot: the state file of the cluster'),
      list: flag(bool, false, 'list the snapshots as JSON'),
      bucket: flag(string, '', 'JSON `file` with the S3 bucket to copy snapshots to'),
      fetch: flag(string, '', 'download the snapshot with this name from the bucket'),
      interval: flag(duration, 43_200_000, 'interval between snapshots'),
      retention: flag(int, 6, 'number of snapshots to keep'),
    },
    logs: LOG_FLAGS,
  },
  async run({ flags, stdin, stdout, log, ...context }, signal) {
    const { clock } = context
    await using closing = new AsyncDisposableStack()
    const bucket = await bucketOf(flags.bucket, context)
    closing.defer(() => bucket?.close())
    if (flags.list) {
      const copies = bucket === undefined ? [] : await copiesIn(bucket, signal)
      stdout.write(`${JSON.stringify([...(await listSnapshots(flags.folder)), ...copies])}\n`)
      return 0
    }
    if (flags.fetch !== '') {
      if (bucket === undefined) throw new ProgramError('Set --bucket to the bucket to download from')
      await fetchSnapshot(bucket, flags.folder, flags.fetch, signal)
      return 0
    }
    if (flags.name !== '') {
      const state = flags['with-state'] ? await buffer(stdin()) : undefined
      const { file } = await take(flags, flags.name, context, signal)
      if (state !== undefined)
        await writeFileAtomically(join(flags.folder, `${flags.name}.rkestate`), state, { mode: 0o600 })
      if (bucket !== undefined) await copySnapshot(bucket, flags.folder, flags.name, signal)
      stdout.write(`${file}\n`)
      return 0
    }
    /** The last snapshot, until its copy in the bucket is confirmed. */
    let uncopied: string | undefined
    while (!signal.aborted) {
      try {
        if (bucket !== undefined && uncopied !== undefined)
          await copyOne(bucket, uncopied, { ...flags, nowMs: clock.now() }, signal)
        uncopied = undefined
        const names = (await listSnapshots(flags.folder)).map(({ name }) => name)
        await sleep(clock, dueInMs(names, flags.interval, clock.now()), signal)
        const name = recurringName(clock.now())
        const { revision, sizeBytes } = await take(flags, name, context, signal)
        log.info('Took etcd snapshot', { name, revision, sizeBytes })
        uncopied = name
        await clearUp(flags.folder, outdated([...names, name], flags.retention))
      } catch (error) {
        if (signal.aborted) break
        log.error(error as Error, 'Failed to take or copy a snapshot')
        await sleep(clock, AGAIN_MS, signal)
      }
    }
    return 0
  },
})

async function bucketOf(
  file: string,
  { clock, readFile }: Pick<ProgramContext, 'clock' | 'readFile'>,
): Promise<Bucket | undefined> {
  return file === '' ? undefined : new Bucket(JSON.parse(await readFile(file)) as BucketLocation, clock)
}

/** An unreachable bucket does not hide local snapshots. */
async function copiesIn(bucket: Bucket, signal: AbortSignal): Promise<object[]> {
  try {
    return (await listCopies(bucket, signal)).map((copy) => ({ ...copy, isCopy: true }))
  } catch (error) {
    return [{ name: 'S3', problem: (error as Error).message, isCopy: true }]
  }
}

interface Schedule {
  readonly folder: string
  readonly interval: number
  readonly retention: number
  readonly nowMs: number
}

/** All members share a bucket: later members skip an existing snapshot. */
async function copyOne(
  bucket: Bucket,
  name: string,
  { folder, interval, retention, nowMs }: Schedule,
  signal: AbortSignal,
): Promise<void> {
  const names = (await listCopies(bucket, signal)).map((copy) => copy.name)
  if (dueInMs(names, interval / 2, nowMs) > 0) return
  await copySnapshot(bucket, folder, name, signal)
  await deleteCopies(bucket, outdated([...names, name], retention), signal)
}

async function clearUp(folder: string, names: readonly string[]): Promise<void> {
  for (const file of names.flatMap((name) => ENDINGS.map((ending) => `${name}${ending}`)))
    await rm(join(folder, file), { force: true })
}

async function take(
  { folder, endpoint, cacert, cert, key, timeout }: SnapshotFlags,
  name: string,
  { clock, random, readFile }: Pick<ProgramContext, 'clock' | 'random' | 'readFile'>,
  signal: AbortSignal,
): ReturnType<typeof saveSnapshot> {
  const textOf = async (path: string): Promise<string | undefined> => (path === '' ? undefined : readFile(path))
  const [ca, certificate, ownKey] = await Promise.all([textOf(cacert), textOf(cert), textOf(key)])
  const tls = { ...(ca && { ca }), ...(certificate && { certificate }), ...(ownKey && { key: ownKey }) }
  const late = new AbortController()
  const timer = clock.after(timeout, () =>
    late.abort(new ProgramError(`The snapshot takes longer than ${timeout / 1000} s`)),
  )
  try {
    const limits = { signal: AbortSignal.any([signal, late.signal]) }
    return await saveSnapshot(endpoint, folder, { clock, random, name, etcd: { tls }, ...limits })
  } finally {
    timer.cancel()
  }
}
