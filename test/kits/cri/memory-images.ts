/** The images of the in-memory runtime, with the metadata of a registry. */
import { createHash } from 'node:crypto'

import type { Image } from '#apis/wire/cri.ts'
import { normalImageName, repositoryOf } from '#cri/image-name.ts'
import { GrpcError } from '#lib/grpc/status.ts'
import { imageSizeOf } from '#simulated-node/image.ts'

/** Image metadata in the registry. Equal content is the same image. */
export interface MemoryImage {
  /** Default: the name. */
  readonly content?: string
  readonly entrypoint?: readonly string[]
  readonly command?: readonly string[]
  readonly uid?: number
  readonly username?: string
  readonly pinned?: boolean
}

export interface KeptImage extends MemoryImage {
  readonly metadata: Image
}

export class MemoryImages {
  readonly #pull: (image: string) => MemoryImage | Promise<MemoryImage>
  /** By ID, `sha256:…`. */
  readonly #kept = new Map<string, KeptImage>()

  constructor({
    pull = () => ({}),
  }: {
    readonly pull?: ((image: string) => MemoryImage | Promise<MemoryImage>) | undefined
  }) {
    this.#pull = pull
  }

  /** By ID, digest or name. */
  find(image: string): KeptImage | undefined {
    const own = this.#kept.get(image) ?? this.#kept.get(`sha256:${image}`)
    if (own !== undefined || image === '') return own
    const name = normalImageName(image)
    return [...this.#kept.values()].find(
      ({ metadata }) => metadata.repoTags.includes(name) || metadata.repoDigests.includes(name),
    )
  }

  list(image: string): Image[] {
    const found = image === '' ? [...this.#kept.values()] : [this.find(image)]
    return found.flatMap((one) => one?.metadata ?? [])
  }

  /** Fails with the registry's error, prefixed like containerd's. */
  async pull(image: string): Promise<string> {
    const name = normalImageName(image)
    const description = await this.#describe(name)
    const digest = createHash('sha256')
      .update(description.content ?? name)
      .digest('hex')
    const id = `sha256:${digest}`
    const known = this.#kept.get(id)?.metadata
    const isTag = !name.includes('@')
    const repoDigest = isTag
      ? `${repositoryOf(name)}@sha256:${createHash('sha256').update(digest).digest('hex')}`
      : name
    const metadata: Image = {
      id,
      repoTags: [...new Set([...(known?.repoTags ?? []), ...(isTag ? [name] : [])])],
      repoDigests: [...new Set([...(known?.repoDigests ?? []), repoDigest])],
      size: imageSizeOf(name),
      // As in containerd, an image without USER has neither.
      uid: description.uid === undefined ? undefined : { value: description.uid },
      username: description.username ?? '',
      spec: undefined,
      pinned: description.pinned ?? false,
    }
    this.#kept.set(id, { ...description, metadata })
    return id
  }

  remove(image: string): void {
    const found = this.find(image)
    if (found !== undefined) this.#kept.delete(found.metadata.id)
  }

  get usedBytes(): number {
    return [...this.#kept.values()].reduce((sum, { metadata }) => sum + Number(metadata.size), 0)
  }

  async #describe(name: string): Promise<MemoryImage> {
    try {
      return await this.#pull(name)
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error
      throw new GrpcError(error.code, `failed to pull and unpack image ${JSON.stringify(name)}: ${error.message}`)
    }
  }
}
