/** Copies the whole store to a file that `etcdctl snapshot restore` accepts: the database and its SHA-256. */
import { createHash } from 'node:crypto'
import { open, rename, rm, type FileHandle } from 'node:fs/promises'

import { Maintenance } from '#apis/wire/etcd.ts'
import { GrpcError } from '#lib/grpc/status.ts'

import { StorageError, type Revision } from '../backend.ts'
import type { EtcdClient } from './client.ts'
import { toStorageError } from './errors.ts'
import { readSnapshotRevision } from './snapshot-file.ts'

const DIGEST_BYTES = 32

/** Atomic, readable by the owner only, and durable when this resolves. Resolves to its revision. */
export async function saveSnapshot(
  client: EtcdClient,
  file: string,
  signal: AbortSignal | undefined,
): Promise<Revision> {
  const part = `${file}.part`
  await rm(part, { force: true })
  const handle = await open(part, 'wx+', 0o600)
  let revision: Revision
  try {
    await receive(client, handle, signal)
    revision = await readSnapshotRevision(handle)
    await handle.sync()
  } catch (error) {
    await handle.close()
    await rm(part, { force: true })
    if (signal?.aborted) throw signal.reason
    throw error instanceof GrpcError ? toStorageError(error, { isWrite: false }) : error
  }
  await handle.close()
  await rename(part, file)
  return revision
}

/** The digest comes last; it does not cover itself. */
async function receive(client: EtcdClient, handle: FileHandle, signal: AbortSignal | undefined): Promise<void> {
  const hash = createHash('sha256')
  let tail: Buffer = Buffer.alloc(0)
  for await (const { blob } of await client.serverStream(Maintenance.snapshot, {}, signal)) {
    await handle.appendFile(blob)
    const seen = Buffer.concat([tail, blob])
    const covered = Math.max(0, seen.length - DIGEST_BYTES)
    hash.update(seen.subarray(0, covered))
    tail = seen.subarray(covered)
  }
  if (!hash.digest().equals(tail)) {
    throw new StorageError('corrupt', 'The snapshot etcd sent does not match its own checksum; take another one')
  }
}
