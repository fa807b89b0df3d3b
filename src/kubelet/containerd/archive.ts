/**
 * Archives of images, as `docker save`, `podman save`, `skopeo` and `buildkit` write them: OCI layouts and docker's own form,
 * plain or compressed. Read once, from front to back: blobs go to containerd as they come, and what they make up is said at
 * the end, because most writers put it there.
 */
import { posix } from 'node:path'
import { pipeline } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'

import { readTar, type TarEntry, TarError } from '#lib/tar-read.ts'

import type { Blob, Bytes } from './image-writer.ts'

/** What is wrong with an archive, for whoever made it. */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError'
}

/** A file of the archive that is stored now. */
export interface StoredFile extends Blob {
  /** Of small files that may be JSON. */
  readonly json: Buffer | undefined
  readonly compression: Compression
}

export type Compression = 'none' | 'gzip' | 'zstd'

export interface Archive {
  /** By name, with links resolved; undefined: the archive has no such file. */
  file(name: string): StoredFile | undefined
}

export interface BlobStore {
  write(content: Bytes): Promise<Blob>
  keep(digest: string): Promise<boolean>
}

/** Descriptions of images are far smaller; larger files are never read for what they say. */
const TEXT_BYTES = 4 << 20
/** Of all of them: an archive must not fill our memory by their number. */
const TEXTS_BYTES = 64 << 20

/** Stores every file of the archive. Throws ArchiveError for one that is broken. */
export async function storeArchive(bytes: AsyncIterable<Uint8Array>, store: BlobStore): Promise<Archive> {
  const files = new Map<string, StoredFile>()
  const links = new Map<string, string>()
  let texts = 0
  try {
    for await (const entry of readTar(await uncompressed(bytes))) {
      const name = posix.normalize(entry.name).replace(/^\/+/, '')
      if (entry.type === 'link') links.set(name, posix.join(posix.dirname(name), entry.link))
      if (entry.type === 'hard link') links.set(name, posix.normalize(entry.link))
      if (entry.type !== 'file' || IGNORED.test(name)) continue
      const file = await storeFile(name, entry, store)
      texts += file.json?.length ?? 0
      if (texts > TEXTS_BYTES) throw new ArchiveError('it describes more images than are to be believed')
      files.set(name, file)
    }
  } catch (error) {
    throw isBroken(error) ? new ArchiveError(error.message, { cause: error }) : error
  }
  return { file: (name) => files.get(resolved(name, links)) }
}

/** What docker of old wrote for docker older still. */
const IGNORED = /(?:^|\/)(?:VERSION|repositories)$|^[0-9a-f]{64}\/json$/

function isBroken(error: unknown): error is Error {
  return (
    error instanceof TarError || (error instanceof Error && /^(?:Z_|ZSTD_)/.test(String(Reflect.get(error, 'code'))))
  )
}

/** A link to a link to itself leads nowhere. */
function resolved(name: string, links: ReadonlyMap<string, string>): string {
  let at = name
  for (let hops = 0; hops < 10 && links.has(at); hops++) at = links.get(at) ?? ''
  return at
}

async function storeFile(name: string, { size, content }: TarEntry, store: BlobStore): Promise<StoredFile> {
  const stated = /^blobs\/sha256\/([0-9a-f]{64})$/.exec(name)?.[1]
  const head = new HeadOf(content)
  const start = await head.bytes()
  const compression = compressionOf(start)
  const json = size <= TEXT_BYTES && /^\s*[{[]/.test(start.toString('latin1')) ? await head.whole() : undefined
  if (stated !== undefined && (await store.keep(`sha256:${stated}`)))
    return { digest: `sha256:${stated}`, size, json, compression }
  const blob = await store.write(json === undefined ? head.all() : [json])
  if (stated !== undefined && blob.digest !== `sha256:${stated}`)
    throw new ArchiveError(`the content of ${name} is another: ${blob.digest}`)
  return { ...blob, json, compression }
}

/** A content of which the beginning can be looked at first. */
class HeadOf {
  readonly #parts: AsyncIterator<Buffer>
  #seen: Buffer = Buffer.alloc(0)

  constructor(content: AsyncIterable<Buffer>) {
    this.#parts = content[Symbol.asyncIterator]()
  }

  async bytes(): Promise<Buffer> {
    while (this.#seen.length < 4) {
      const { done, value } = await this.#parts.next()
      if (done === true) break
      this.#seen = Buffer.concat([this.#seen, value])
    }
    return this.#seen
  }

  async *all(): AsyncGenerator<Buffer> {
    try {
      yield this.#seen
      for (let next = await this.#parts.next(); next.done !== true; next = await this.#parts.next()) yield next.value
    } finally {
      await this.#parts.return?.()
    }
  }

  async whole(): Promise<Buffer> {
    return Buffer.concat(await Array.fromAsync(this.all()))
  }
}

export function compressionOf(start: Buffer): Compression {
  if (start[0] === 0x1f && start[1] === 0x8b) return 'gzip'
  return start.length >= 4 && start.readUInt32LE(0) === 0xfd2fb528 ? 'zstd' : 'none'
}

async function uncompressed(bytes: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array>> {
  async function* parts(): AsyncGenerator<Buffer> {
    for await (const part of bytes) yield Buffer.from(part.buffer, part.byteOffset, part.byteLength)
  }
  const head = new HeadOf(parts())
  const compression = compressionOf(await head.bytes())
  if (compression === 'none') return head.all()
  // Errors of either end are those of the reader, who reads to the end.
  return pipeline(head.all(), compression === 'gzip' ? createGunzip() : createZstdDecompress(), () => undefined)
}
