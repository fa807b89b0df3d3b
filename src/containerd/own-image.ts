/**
 * Builds an image of this program from the running copy: its files, its Node, `ip` and the libraries of both. Pods
 * can then run cluster components without a registry.
 */
import { execFile } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { access, lstat, readdir, readlink, stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'

import { TAR_END, tarHeaders, tarPadding } from '#lib/files/tar-write.ts'
import { hasStatus } from '#lib/grpc/status.ts'
import { OWN_REPOSITORY, ownImage } from '#model/own-image.ts'

import { type ImageWriter, withImageWriter, type WriterTools } from './image-writer.ts'
import { MEDIA_TYPE, nameImage } from './manifest.ts'
import { pauseArchitecture } from './pause-image.ts'

export interface OwnProgram {
  /** Its directory. */
  readonly root: string
  /** Identifies the version; valid as an image tag. */
  readonly id: string
  /** The Node binary that runs it. */
  readonly node: string
}

const run = promisify(execFile)
const PLACE = 'opt/hyperkube'
const NODE = 'usr/local/bin/node'
const PATH = 'PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const IP_PLACES = ['/usr/sbin/ip', '/sbin/ip', '/usr/bin/ip', '/bin/ip']
/** The same flags as bin/hyperkube, because the image has no shell. */
export const ENTRYPOINT: readonly string[] = [
  `/${NODE}`,
  '--disable-warning=ExperimentalWarning',
  '--expose-gc',
  '--heap-growing-percent=50',
  '--external-memory-accounted-in-global-limit',
  `/${PLACE}/bin/entry.cjs`,
]

/**
 * Writes the image unless it exists, and unnames older ones, which are removed when unused. Returns true if it was
 * written.
 */
export async function ensureOwnImage(tools: WriterTools, program: OwnProgram): Promise<boolean> {
  const { api } = tools
  const mark = `${OWN_REPOSITORY}:program-${program.id}`
  const isThere = await api.getImage({ name: mark }).then(
    () => true,
    (error: unknown) => {
      if (hasStatus(error, 'notFound')) return false
      throw error
    },
  )
  if (isThere) return false
  await withImageWriter(tools, (writer) => writeOwnImage(writer, program, [ownImage(), mark]))
  const { images } = await api.listImages({ filters: [] })
  const old = images.filter(({ name }) => name.startsWith(`${OWN_REPOSITORY}:program-`) && name !== mark)
  for (const { name } of old) await api.deleteImage({ name, sync: false })
  return true
}

async function writeOwnImage(writer: ImageWriter, program: OwnProgram, names: readonly string[]): Promise<void> {
  const layer = await writer.write(archive(await filesOf(program)))
  const config = await writer.writeJson({
    architecture: pauseArchitecture(process.arch),
    os: 'linux',
    created: '1970-01-01T00:00:00Z',
    config: { Entrypoint: ENTRYPOINT, Env: [PATH, 'HYPERKUBE_ARGV0=hyperkube'], WorkingDir: '/' },
    rootfs: { type: 'layers', diff_ids: [layer.digest] },
    history: [{ created: '1970-01-01T00:00:00Z', created_by: 'hyperkube' }],
  })
  // Pinned, since a node could not pull it again.
  await nameImage(writer, { names, config, layers: [{ ...layer, mediaType: MEDIA_TYPE.layer }], pinned: true })
}

interface ImageFile {
  /** The path in the image, without a leading slash. */
  readonly name: string
  readonly from: string
}

async function filesOf({ root, node }: OwnProgram): Promise<ImageFile[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true })
  const own = entries
    .filter((entry) => entry.isFile() || entry.isSymbolicLink())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => path !== node)
    .toSorted()
  const ip = await firstThere(IP_PLACES)
  const programs = [node, ...(ip === undefined ? [] : [ip])]
  const linked = await Promise.all(programs.map(librariesOf))
  return [
    ...[...new Set(linked.flat())].map((from) => ({ name: from.slice(1), from })),
    { name: NODE, from: node },
    ...(ip === undefined ? [] : [{ name: 'usr/sbin/ip', from: ip }]),
    ...own.map((from) => ({ name: `${PLACE}/${relative(root, from)}`, from })),
  ]
}

async function firstThere(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    const isThere = await access(path).then(
      () => true,
      () => false,
    )
    if (isThere) return path
  }
  return undefined
}

/** The libraries found by the machine's dynamic linker, including the linker. */
async function librariesOf(program: string): Promise<string[]> {
  const { stdout } = await run(program, [], { env: { LD_TRACE_LOADED_OBJECTS: '1' } })
  return librariesIn(stdout)
}

export function librariesIn(traced: string): string[] {
  return [...traced.matchAll(/^\s*(?:\S+ => )?(\/\S+) \(0x[\da-f]+\)$/gm)].map(([, path = '']) => path)
}

/** Links in the program's directory stay links; library links are resolved. */
async function* archive(files: readonly ImageFile[]): AsyncGenerator<Buffer> {
  yield tarHeaders({ name: 'tmp/', mode: 0o1777 }, 0)
  for (const { name, from } of files) {
    const isOwn = name.startsWith(PLACE)
    if (isOwn && (await lstat(from)).isSymbolicLink()) {
      yield tarHeaders({ name, mode: 0o777, link: await readlink(from) }, 0)
      continue
    }
    const { size, mode } = await stat(from)
    yield tarHeaders({ name, mode: mode & 0o111 ? 0o755 : 0o644 }, size)
    for await (const piece of createReadStream(from, { highWaterMark: PIECE_BYTES })) yield piece as Buffer
    yield tarPadding(size)
  }
  yield TAR_END
}

const PIECE_BYTES = 1 << 20
