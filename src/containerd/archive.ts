/**
 * Reads image archives of `docker save`, `podman save`, `skopeo` and `buildkit`: OCI layouts and docker's format, plain
 * or compressed. One pass stores the blobs in containerd. Images are found at the end, because most writers put the
 * manifest last.
 */
import { posix } from 'node:path'
import { pipeline } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'

import { readTar, type TarEntry, TarError } from '#lib/files/tar-read.ts'

import type { Blob, Bytes } from './image-writer.ts'

/** An error in the archive, with a text for its author. */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError'
}

/** A file of the archive that is stored in containerd. */
export interface StoredFile extends Blob {
  /** Content of small files that may be JSON. */
  readonly json: Buffer | undefined
  readonly compression: Compression
}

export type Compression = 'none' | 'gzip' | 'zstd'

export interface Archive {
  /** Resolves links; undefined when the archive has no such file. */
  file(name: string): StoredFile | undefined
}

export interface BlobStore {
  write(content: Bytes): Promise<Blob>
  keep(digest: string): Promise<boolean>
}

/** Manifests are far smaller; larger files are never parsed. */
const TEXT_BYTES = 4 << 20
/** Limit for all parsed files, so that many small ones cannot exhaust the memory. */
const TEXTS_BYTES = 64 << 20

/** Stores every file. Throws ArchiveError for a broken archive. */
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
      if (texts > TEXTS_BYTES) throw new ArchiveError('its JSON files are too large')
      files.set(name, file)
    }
  } catch (error) {
    throw isBroken(error) ? new ArchiveError(error.message, { cause: error }) : error
  }
  return { file: (name) => files.get(resolved(name, links)) }
}

/** Legacy files that older docker versions write. */
const IGNORED = /(?:^|\/)(?:VERSION|repositories)$|^[0-9a-f]{64}\/json$/

function isBroken(error: unknown): error is Error {
  return (
    error instanceof TarError || (error instanceof Error && /^(?:Z_|ZSTD_)/.test(String(Reflect.get(error, 'code'))))
  )
}

/** Stops after ten links, since links may form a loop. */
function resolved(name: string, links: ReadonlyMap<string, string>): string {
  let at = name
  for (let hops = 0; hops < 10 && links.has(at); hops++) at = links.get(at) ?? ''
  return at
}

async function storeFile(name: string, { size, content }: TarEntry, store: BlobStore): Promise<StoredFile> {
  const stated = /^blobs\/sha256\/([0-9a-f]{64})$/.exec(name)?.[1]
  const head = new PeekableStream(content)
  const start = await head.bytes()
  const compression = compressionOf(start)
  const json = size <= TEXT_BYTES && /^\s*[{[]/.test(start.toString('latin1')) ? await head.whole() : undefined
  if (stated !== undefined && (await store.keep(`sha256:${stated}`)))
    return { digest: `sha256:${stated}`, size, json, compression }
  const blob = await store.write(json === undefined ? head.all() : [json])
  if (stated !== undefined && blob.digest !== `sha256:${stated}`)
    throw new ArchiveError(`the content of ${name} has another digest: ${blob.digest}`)
  return { ...blob, json, compression }
}

/** A stream whose first bytes can be read ahead. */
class PeekableStream {
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
  const head = new PeekableStream(parts())
  const compression = compressionOf(await head.bytes())
  if (compression === 'none') return head.all()
  // Errors of the pipeline reach the consumer, which reads to the end.
  return pipeline(head.all(), compression === 'gzip' ? createGunzip() : createZstdDecompress(), () => undefined)
}
