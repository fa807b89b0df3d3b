/**
 * Bundles the console (src/console) into a folder: `index.html`, and `assets/` with the hash of each file in its name.
 * Beside each asset are its compressed forms. `npm run console` builds for a checkout, and scripts/build.ts for the
 * package.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip as gzipAsync, gzipSync } from 'node:zlib'

import { build, type BuildOptions, type Metafile } from 'esbuild'

import { takeProcessLock } from '#lib/process/lock.ts'

const CONSOLE = join(import.meta.dirname, '..', 'src', 'console')
const SRC = join(CONSOLE, '..')
const ROOT = join(SRC, '..')
const PAGE = join(CONSOLE, 'page')
/** Beside the page: its sources, and a hash of each. */
const STAMP = join(CONSOLE, 'page.sources')

/** Each has a folder with the file `worker-entry.ts`. */
const WORKERS = ['lists', 'logs']

export interface ConsoleSizes {
  /** Gzipped bytes by the name of the file. */
  readonly gzip: Readonly<Record<string, number>>
  /** Gzipped bytes of all that the first page loads. */
  readonly first: number
  /** The paths of the sources. */
  readonly inputs: readonly string[]
}

export async function bundleConsole(folder: string): Promise<ConsoleSizes> {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(join(folder, 'assets'), { recursive: true })
  const worker = await bundle(
    folder,
    Object.fromEntries(WORKERS.map((name) => [name, join(CONSOLE, name, 'worker-entry.ts')])),
  )
  const workers = WORKERS.map((name) => [name, `/ui/assets/${outputOf(worker, `${name}/worker-entry.ts`)}`])
  const page = await bundle(
    folder,
    { main: join(CONSOLE, 'main.tsx') },
    { WORKER_URLS: JSON.stringify(Object.fromEntries(workers)) },
  )
  const main = outputOf(page, 'main.tsx')
  const style = basename(
    Object.entries(page.outputs).find(([, { entryPoint }]) => entryPoint?.endsWith('main.tsx'))?.[1].cssBundle ?? '',
  )
  const html = readFileSync(join(CONSOLE, 'index.html'), 'utf8')
    .replace('__MAIN__', `/ui/assets/${main}`)
    .replace('__STYLE__', `/ui/assets/${style}`)
  writeFileSync(join(folder, 'index.html'), html)
  const files = [...Object.keys(worker.outputs), ...Object.keys(page.outputs)].map((path) => basename(path))
  const sizes = files.map(async (file) => [file, await compress(join(folder, 'assets', file))] as const)
  const gzip: Readonly<Record<string, number>> = Object.fromEntries(await Promise.all(sizes))
  const loaded = [...staticImports(page, main), style, outputOf(worker, 'lists/worker-entry.ts')]
  // esbuild lists its defines too.
  const inputs = [worker, page].flatMap((one) => Object.keys(one.inputs)).filter((path) => !path.startsWith('<'))
  return {
    inputs: [...inputs.map((path) => resolve(ROOT, path)), join(CONSOLE, 'index.html')],
    gzip,
    first: gzipSync(html).length + loaded.reduce((sum, file) => sum + (gzip[file] ?? 0), 0),
  }
}

async function bundle(
  folder: string,
  entryPoints: Record<string, string>,
  define: Record<string, string> = {},
): Promise<Metafile> {
  const options: BuildOptions = {
    entryPoints,
    outdir: join(folder, 'assets'),
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    target: ['chrome123', 'firefox120', 'safari17.5'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    alias: Object.fromEntries(['meta', 'apis', 'model', 'lib'].map((room) => [`#${room}`, join(SRC, room)])),
    define,
    minify: true,
    legalComments: 'none',
    logLevel: 'warning',
    metafile: true,
    absWorkingDir: ROOT,
  }
  const { metafile } = await build(options)
  if (metafile === undefined) throw new Error('esbuild wrote no list of its files')
  return metafile
}

function outputOf({ outputs }: Metafile, entry: string): string {
  const found = Object.entries(outputs).find(([, { entryPoint }]) => entryPoint?.endsWith(entry))
  if (found === undefined) throw new Error(`esbuild built no file for ${entry}`)
  return basename(found[0])
}

/** The file and those that it imports at once. */
function staticImports({ outputs }: Metafile, file: string): readonly string[] {
  const found = new Set([file])
  for (const name of found) {
    const output = Object.entries(outputs).find(([path]) => basename(path) === name)?.[1]
    for (const { path, kind } of output?.imports ?? []) if (kind === 'import-statement') found.add(basename(path))
  }
  return [...found]
}

/** Returns the size of the gzipped form. Other threads compress: a test that builds the page also runs a cluster. */
async function compress(file: string): Promise<number> {
  const bytes = readFileSync(file)
  const gzip = await promisify(gzipAsync)(bytes, { level: 9 })
  writeFileSync(`${file}.gz`, gzip)
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11 }
  writeFileSync(`${file}.br`, await promisify(brotliCompress)(bytes, { params }))
  return gzip.length
}

/**
 * Builds the page of this checkout if a source has changed since it was built. Tests use it, so that a change is never
 * tested with an old page. Only one process builds: another one that has the new page serves it already.
 */
export async function ensureConsolePage(): Promise<URL> {
  while (!isFresh()) {
    const attempt = takeProcessLock(`${PAGE}.lock`, 'upkeep')
    if (!('lock' in attempt)) await setTimeout(LOCKED_MS)
    else await buildPage().finally(() => attempt.lock.release())
  }
  return pathToFileURL(`${PAGE}/`)
}

/** Until the next look whether another process has built the page. */
const LOCKED_MS = 200

async function buildPage(): Promise<void> {
  // The owner of the lock before may have built it.
  if (isFresh()) return
  const fresh = `${PAGE}.${process.pid}`
  const { inputs } = await bundleConsole(fresh)
  const hashes = inputs.map((path) => [path, hashOf(path)])
  rmSync(STAMP, { force: true })
  rmSync(PAGE, { recursive: true, force: true })
  renameSync(fresh, PAGE)
  writeFileSync(STAMP, JSON.stringify(hashes))
}

function isFresh(): boolean {
  if (!existsSync(STAMP) || !existsSync(PAGE)) return false
  const stamp = JSON.parse(readFileSync(STAMP, 'utf8')) as readonly (readonly [path: string, hash: string])[]
  return stamp.every(([path, hash]) => existsSync(path) && hashOf(path) === hash)
}

function hashOf(path: string): string {
  return createHash('sha1').update(readFileSync(path)).digest('base64')
}

if (import.meta.main) {
  rmSync(STAMP, { force: true })
  const { gzip, first } = await bundleConsole(PAGE)
  for (const [file, bytes] of Object.entries(gzip)) console.log(`${(bytes / 1000).toFixed(1).padStart(7)} kB  ${file}`)
  console.log(`${(first / 1000).toFixed(1).padStart(7)} kB  for the first page`)
}
