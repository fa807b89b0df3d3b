/** Writes images with shared layers as one archive, in the format of `docker save`. */
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { rename } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

import { TAR_END, tarHeader, tarPadding } from '#lib/files/tar-write.ts'

import type { WrittenLayer } from './layer.ts'

export interface ImageToWrite {
  readonly names: readonly string[]
  readonly layers: readonly WrittenLayer[]
  /** As docker has it: Entrypoint, Cmd, Env, User, WorkingDir. */
  readonly config: object
  /** As Kubernetes calls it. */
  readonly architecture: string
}

/** Whole when it resolves. */
export async function writeArchive(images: readonly ImageToWrite[], file: string): Promise<void> {
  const unfinished = `${file}.unfinished`
  await pipeline(Readable.from(archive(images)), createWriteStream(unfinished))
  await rename(unfinished, file)
}

async function* archive(images: readonly ImageToWrite[]): AsyncGenerator<Uint8Array> {
  const layers = new Map(images.flatMap((image) => image.layers.map((layer) => [layer.digest, layer])))
  for (const { file, digest, size } of layers.values()) {
    yield tarHeader({ name: `${digest}.tar`, mode: 0o644 }, size)
    yield* createReadStream(file)
    yield tarPadding(size)
  }
  const configs = images.map((image) => Buffer.from(JSON.stringify(configOf(image))))
  const names = configs.map((config) => `${createHash('sha256').update(config).digest('hex')}.json`)
  const manifest = images.map((image, at) => ({
    Config: names[at],
    RepoTags: image.names,
    Layers: image.layers.map(({ digest }) => `${digest}.tar`),
  }))
  const documents = new Map(configs.map((config, at) => [names[at] ?? '', config]))
  for (const [name, content] of [...documents, ['manifest.json', Buffer.from(JSON.stringify(manifest))] as const]) {
    yield tarHeader({ name, mode: 0o644 }, content.length)
    yield content
    yield tarPadding(content.length)
  }
  yield TAR_END
}

/** Of no moment: the same files make the same image at any time. */
const CREATED = '1970-01-01T00:00:00Z'

function configOf({ layers, config, architecture }: ImageToWrite): object {
  return {
    architecture,
    os: 'linux',
    created: CREATED,
    config,
    rootfs: { type: 'layers', diff_ids: layers.map(({ digest }) => `sha256:${digest}`) },
    history: layers.map(() => ({ created: CREATED, created_by: 'hyperkube test/images' })),
  }
}
