/** Writes an image layer as a tar archive from a list of files. The result is reproducible on every machine. */
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, statSync } from 'node:fs'
import { posix } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

import { TAR_END, tarHeader, tarPadding } from '#lib/files/tar-write.ts'

export interface LayerFile {
  /** From the root, without a leading slash; a folder's ends in one. */
  readonly path: string
  readonly mode?: number
  /** The content: text or bytes, a file of this machine, or none. */
  readonly content?: string | Uint8Array
  readonly from?: string
  readonly link?: string
  readonly uid?: number
  readonly gid?: number
}

export interface WrittenLayer {
  readonly file: string
  readonly digest: string
  readonly size: number
}

/** Folders above files are made; of two files of one path the later wins. */
export function completed(files: readonly LayerFile[]): LayerFile[] {
  const byPath = new Map<string, LayerFile>()
  for (const file of files) {
    for (let folder = posix.dirname(file.path); folder !== '.'; folder = posix.dirname(folder))
      if (!byPath.has(`${folder}/`)) byPath.set(`${folder}/`, { path: `${folder}/` })
    byPath.set(file.path, file)
  }
  return [...byPath.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
}

export async function writeLayer(files: readonly LayerFile[], file: string): Promise<WrittenLayer> {
  const hash = createHash('sha256')
  let size = 0
  async function* counted(): AsyncGenerator<Uint8Array> {
    for await (const part of archive(completed(files))) {
      hash.update(part)
      size += part.length
      yield part
    }
  }
  await pipeline(Readable.from(counted()), createWriteStream(file))
  return { file, digest: hash.digest('hex'), size }
}

async function* archive(files: readonly LayerFile[]): AsyncGenerator<Uint8Array> {
  for (const { path, mode, content = '', from, link, uid, gid } of files) {
    const bytes = typeof content === 'string' ? Buffer.from(content) : content
    const size = from === undefined ? bytes.length : statSync(from).size
    const header = { name: path, mode: mode ?? (path.endsWith('/') ? 0o755 : 0o644) }
    yield tarHeader(
      {
        ...header,
        ...(link !== undefined && { link }),
        ...(uid !== undefined && { uid }),
        ...(gid !== undefined && { gid }),
      },
      size,
    )
    if (from === undefined) yield bytes
    else yield* createReadStream(from)
    yield tarPadding(size)
  }
  yield TAR_END
}
