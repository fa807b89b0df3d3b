/**
 * Copies of etcd snapshots in a bucket. Each is one object, an archive of all files of the snapshot, so that it is
 * complete even if several machines write it concurrently.
 */
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

import { readTar } from '#lib/files/tar-read.ts'
import { TAR_END, tarHeaders, tarPadding } from '#lib/files/tar-write.ts'

import { digestOf } from '../machines/uploads.ts'
import { snapshotFiles } from '../plan/snapshots.ts'
import type { Bucket, Content } from '../s3/bucket.ts'

const ENDING = '.tar'

export async function copySnapshot(bucket: Bucket, folder: string, name: string, signal: AbortSignal): Promise<void> {
  await bucket.put(`${name}${ENDING}`, await archiveOf(folder, name), signal)
}

/** By snapshot name. */
export async function listCopies(bucket: Bucket, signal: AbortSignal): Promise<{ name: string; sizeBytes: number }[]> {
  const found = await bucket.list(signal)
  return found.flatMap(({ name, size }) =>
    name.endsWith(ENDING) ? [{ name: name.slice(0, -ENDING.length), sizeBytes: size }] : [],
  )
}

export async function deleteCopies(bucket: Bucket, names: readonly string[], signal: AbortSignal): Promise<void> {
  for (const name of names) await bucket.delete(`${name}${ENDING}`, signal)
}

/** Downloads it to the folder, the description last. Rejects if the content is corrupted. */
export async function fetchSnapshot(bucket: Bucket, folder: string, name: string, signal: AbortSignal): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const archive = join(folder, `.${name}${ENDING}`)
  try {
    await bucket.get(
      `${name}${ENDING}`,
      async (bytes, sha256) => {
        await pipeline(bytes, createWriteStream(archive, { mode: 0o600 }))
        if (sha256 !== undefined && (await digestOf(archive)) !== sha256)
          throw new Error(`Snapshot "${name}" was not downloaded correctly`)
      },
      signal,
    )
    await unpack(archive, folder, name)
  } finally {
    await rm(archive, { force: true })
  }
}

async function archiveOf(folder: string, name: string): Promise<Content> {
  const { database, description, state } = snapshotFiles(folder, name)
  const parts: { path: string; header: Buffer; size: number }[] = []
  for (const path of [database, state, description]) {
    const found = await stat(path).catch(() => undefined)
    if (found === undefined) continue
    const header = tarHeaders({ name: path.slice(folder.length + 1), mode: 0o600 }, found.size)
    parts.push({ path, header, size: found.size })
  }
  const bytes = async function* (): AsyncGenerator<Buffer> {
    for (const { path, header, size } of parts) {
      yield header
      yield* createReadStream(path) as AsyncIterable<Buffer>
      yield tarPadding(size)
    }
    yield TAR_END
  }
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of bytes()) {
    hash.update(chunk)
    size += chunk.length
  }
  return { size, sha256: hash.digest('hex'), bytes }
}

async function unpack(archive: string, folder: string, name: string): Promise<void> {
  const known = new Set(Object.values(snapshotFiles(folder, name)))
  for await (const { name: entry, content } of readTar(createReadStream(archive) as AsyncIterable<Buffer>)) {
    const path = join(folder, entry)
    if (!known.has(path)) continue
    const part = join(folder, `.${entry}.part`)
    await pipeline(content, createWriteStream(part, { mode: 0o600, flush: true }))
    await rename(part, path)
  }
}
