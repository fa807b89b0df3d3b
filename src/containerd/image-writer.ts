/**
 * Imports images into containerd: writes blobs under a lease, then names the image. The name comes last, so an image
 * is complete or absent; blobs of a failed import are collected after the lease ends.
 */
import { createHash } from 'node:crypto'

import type { Clock } from '#lib/clock.ts'
import { hasStatus } from '#lib/grpc/status.ts'
import type { Random } from '#lib/random.ts'

import { type Descriptor, type ImageApi, inLease, WRITE_ACTION } from './image-api.ts'

/** Marks the image as managed by CRI, so that the kubelet sees it. */
const MANAGED = ['io.cri-containerd.image', 'managed'] as const
/** Excludes the image from the kubelet's garbage collection. */
const PINNED = ['io.cri-containerd.pinned', 'pinned'] as const

/** containerd rejects messages above 16 MiB; smaller ones need more round trips. */
const CHUNK_BYTES = 1 << 20
/** Longer than any import; a killed import keeps its blobs no longer than this. */
const LEASE_MS = 3_600_000

export interface Blob {
  readonly digest: string
  readonly size: number
}

export type Bytes = AsyncIterable<Uint8Array> | Iterable<Uint8Array>
export type BlobLabels = ReadonlyMap<string, string>

export interface NamedImage {
  /** Normalized names; CRI also needs the digest of the configuration as a name. */
  readonly names: readonly string[]
  readonly target: Omit<Descriptor, 'annotations'>
  readonly pinned?: boolean
}

export interface WriterTools {
  readonly api: ImageApi
  readonly clock: Clock
  readonly random: Random
  readonly signal?: AbortSignal
}

/** Runs `task` with a writer whose blobs are protected until the task ends. */
export async function withImageWriter<T>(tools: WriterTools, task: (writer: ImageWriter) => Promise<T>): Promise<T> {
  const { api, clock, random } = tools
  const id = `hyperkube-${random.bytes(8).toString('hex')}`
  const expires = new Date(clock.now() + LEASE_MS).toISOString()
  await api.createLease({ id, labels: new Map([['containerd.io/gc.expire', expires]]) })
  try {
    return await task(new ImageWriter(tools, id))
  } finally {
    // The lease expires if containerd does not answer now.
    await api.deleteLease({ id }).catch(() => undefined)
  }
}

export class ImageWriter {
  readonly #tools: WriterTools
  readonly #lease: string
  #count = 0

  constructor(tools: WriterTools, lease: string) {
    this.#tools = tools
    this.#lease = lease
  }

  /** Resolves when the blob is on disk. Buffers at most one chunk. For `labels` see `label`. */
  async write(content: Bytes, labels: BlobLabels = new Map()): Promise<Blob> {
    const { api, signal } = this.#tools
    const ref = `${this.#lease}-${this.#count++}`
    const metadata = inLease(this.#lease)
    const call = api.write({ metadata, ...(signal !== undefined && { signal }) })
    const hash = createHash('sha256')
    let size = 0
    try {
      for await (const data of chunks(content)) {
        hash.update(data)
        await call.send({ action: WRITE_ACTION.write, ref, offset: size, data })
        size += data.length
        await call.responses.next()
      }
      const digest = `sha256:${hash.digest('hex')}`
      await call.send({ action: WRITE_ACTION.commit, ref, offset: size, total: size, expected: digest, labels })
      const committed = await call.responses.next().then(
        () => true,
        (error: unknown) => {
          if (hasStatus(error, 'alreadyExists')) return false
          throw error
        },
      )
      if (!committed) await this.label(digest, labels)
      return { digest, size }
    } finally {
      call.end()
      await api.abortWrite({ ref }).catch(() => undefined)
    }
  }

  writeJson(document: object, labels?: BlobLabels): Promise<Blob> {
    return this.write([Buffer.from(JSON.stringify(document))], labels)
  }

  /** Returns true if the blob exists and protects it. Its labels are unchanged. */
  async keep(digest: string): Promise<boolean> {
    const { api } = this.#tools
    // In this order, so that the garbage collector cannot remove it in between.
    await api.addToLease({ id: this.#lease, resource: { id: digest, type: 'content' } })
    try {
      await api.contentInfo({ digest })
      return true
    } catch (error) {
      if (hasStatus(error, 'notFound')) return false
      throw error
    }
  }

  /** Labels a blob with its references, so that the garbage collector keeps them. */
  async label(digest: string, labels: BlobLabels): Promise<void> {
    const { api } = this.#tools
    await api.addToLease({ id: this.#lease, resource: { id: digest, type: 'content' } })
    const paths = [...labels.keys()].map((key) => `labels.${key}`)
    if (paths.length > 0) await api.updateContent({ info: { digest, labels }, updateMask: { paths } })
  }

  /** Takes over names that belong to other images. */
  async name({ names, target, pinned = false }: NamedImage): Promise<void> {
    const { api } = this.#tools
    const labels = new Map([MANAGED, ...(pinned ? [PINNED] : [])])
    for (const name of names) {
      const image = { name, target, labels }
      await api.createImage({ image }).catch(async (error: unknown) => {
        if (!hasStatus(error, 'alreadyExists')) throw error
        await api.updateImage({ image })
      })
    }
  }
}

async function* chunks(content: Bytes): AsyncGenerator<Uint8Array> {
  for await (const part of content) {
    for (let at = 0; at < part.length; at += CHUNK_BYTES) yield part.subarray(at, at + CHUNK_BYTES)
  }
}
