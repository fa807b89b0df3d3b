/**
 * `npm run build`: bundles the sources into dist/, the published package. `--into FOLDER` builds the same bundle
 * without declarations, for `npm start`. esbuild runs once with code splitting, so that commands load lazily and all
 * entries share their classes. An error thrown by `hyperkube/apiserver` is therefore an `instanceof` the class that
 * `hyperkube/client` exports. A second run builds the standalone bundles. All output is in one flat folder, so that
 * paths relative to `import.meta.url` are the same in every file (see `assetUrls`). Only the API kinds are in a
 * subfolder. Dependencies are not bundled: npm installs them, so users get their security fixes without a release.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, posix, relative } from 'node:path'
import { parseArgs } from 'node:util'

import { build, type BuildOptions, type Plugin } from 'esbuild'

import { bundleConsole } from './console-bundle.ts'
import { bundleKubectl } from './kubectl-bundle.ts'

const ROOT = join(import.meta.dirname, '..')
const SRC = join(ROOT, 'src')
/** `--target node22 --inject FILE`: for an older Node, with what it lacks. */
const { values: options } = parseArgs({
  options: { into: { type: 'string' }, target: { type: 'string', default: 'node24' }, inject: { type: 'string' } },
})
const DIST = options.into ?? join(ROOT, 'dist')
const TSC = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')

/** The package's entry points: output name → source. An entry whose source does not exist yet is skipped with a message. */
const ENTRIES: Readonly<Record<string, string>> = {
  hyperkube: 'cmd/entry.ts',
  main: 'cmd/main.ts',
  client: 'client/public-api.ts',
  apiserver: 'control-plane/start.ts',
  testing: 'testing/public-api.ts',
}

/** Programs of cmd that hold nothing of the others: one that is started all day, and one that stays and is to be small. */
const APART = ['kubectl.ts', 'node/node.ts']

/**
 * Programs that are one file each, with all that they may need: the one that stays, and those that people wait for (ADR 16).
 * `bin/entry.cjs` knows what they are called by.
 */
const SINGLE: Readonly<Record<string, string>> = {
  node: 'node/node.ts',
  'kube-apiserver': 'apiserver.ts',
  'kube-controller-manager': 'controller-manager/controller-manager.ts',
  up: 'cluster/up.ts',
}

/** Files that sources read at run time through `new URL('./x.json', import.meta.url)`; copied with their folders. */
const ASSETS = ['apis/**/*.json', 'apiserver/openapi/**/*.json', 'kubectl/completion/scripts/*']

async function main(): Promise<void> {
  rmSync(DIST, { recursive: true, force: true })
  const entries = Object.entries(ENTRIES).filter(([, source]) => existsSync(join(SRC, source)))
  const workers = globSync('**/*.worker.ts', { cwd: SRC })
  const kinds = globSync('apis/*/v*.ts', { cwd: SRC }).map((source) => source.replaceAll('\\', '/'))
  mkdirSync(DIST, { recursive: true })
  const kubectl = join(SRC, 'cmd', 'kubectl.ts')
  await bundleKubectl(kubectl, join(DIST, 'kubectl.cjs'), { ...shared(), plugins: [assetUrls] })
  for (const [name, source] of Object.entries(SINGLE)) await bundleSingle(name, source)
  await bundle(
    Object.fromEntries([
      ...entries,
      ...workers.map((source) => [workerName(source), source]),
      ...(options.into === undefined ? kinds.map((source) => [source.replace(/\.ts$/, ''), source]) : []),
    ]),
  )
  checkAscii()
  copyAssets()
  await bundleConsole(join(DIST, 'console', 'page'))
  if (options.into !== undefined) return
  emitTypes()
  report(entries.map(([name]) => name))
}

async function bundle(sources: Readonly<Record<string, string>>): Promise<void> {
  await build({
    ...shared(),
    entryPoints: Object.fromEntries(Object.entries(sources).map(([name, source]) => [name, join(SRC, source)])),
    outdir: DIST,
    outExtension: { '.js': '.mjs' },
    chunkNames: '[name]-[hash]',
    splitting: true,
    format: 'esm',
    plugins: [assetUrls, apart],
  })
}

/** Builds a single CommonJS file. A dynamically imported module is evaluated when its import runs. */
async function bundleSingle(name: string, source: string): Promise<void> {
  await build({
    ...shared(),
    entryPoints: [join(SRC, 'cmd', source)],
    outfile: join(DIST, `${name}.cjs`),
    format: 'cjs',
    define: { 'import.meta.url': 'hereAsUrl' },
    banner: { js: "const hereAsUrl=require('node:url').pathToFileURL(__filename).href;" },
    plugins: [assetUrls],
  })
}

function shared(): BuildOptions {
  return {
    bundle: true,
    platform: 'node',
    target: options.target,
    ...(options.inject !== undefined && { inject: [options.inject] }),
    packages: 'external',
    // The imports map would be taken for packages, which are external: name our own rooms first.
    alias: Object.fromEntries(rooms().map((room) => [`#${room}`, join(SRC, room)])),
    sourcemap: 'linked',
    // The engine keeps the whole text of what it runs: blanks and comments would cost every process a megabyte.
    minifyWhitespace: true,
    minifySyntax: true,
    lineLimit: 160,
    legalComments: 'none',
    logLevel: 'warning',
  }
}

/** A single other character, and the engine keeps the whole text of its file in twice the memory. */
function checkAscii(): void {
  const wide = globSync('*.{mjs,cjs}', { cwd: DIST }).filter((file) =>
    readFileSync(join(DIST, file)).some((byte) => byte > 0x7f),
  )
  if (wide.length > 0)
    throw new Error(`${wide.join(', ')}: escape what is not ASCII in regular expressions, as \\u00b5`)
}

function rooms(): string[] {
  return globSync('*/', { cwd: SRC }).map((room) => basename(room))
}

/**
 * Gives each bundled file its own address back: `import.meta.url` in src/apis/x/y.ts becomes dist/apis/x/y.ts, beside
 * which its assets were copied, and the name of a worker's source becomes that of its bundle, seen from there.
 */
const assetUrls: Plugin = {
  name: 'asset-urls',
  setup(step) {
    step.onLoad({ filter: /\.ts$/ }, ({ path }) => {
      if (!path.startsWith(SRC)) return undefined
      const source = readFileSync(path, 'utf8')
      if (!source.includes('import.meta.url')) return undefined
      const here = relative(SRC, path).replaceAll('\\', '/')
      const folder = posix.dirname(here)
      const contents = source
        .replaceAll(/'(\.{1,2}\/[^']+\.worker\.ts)'/g, (_, worker: string) => {
          return `'${posix.relative(folder, `${workerName(posix.join(folder, worker))}.mjs`)}'`
        })
        .replaceAll('import.meta.url', `new URL('./${here}', import.meta.url).href`)
      return { contents, loader: 'ts' }
    })
  },
}

/** For main, they are other bundles. */
const apart: Plugin = {
  name: 'apart',
  setup(step) {
    step.onResolve({ filter: /^\.\// }, ({ importer, path }) =>
      importer === join(SRC, 'cmd', 'main.ts') && APART.includes(path.slice(2))
        ? { path: `./${basename(path, '.ts')}.cjs`, external: true }
        : undefined,
    )
  },
}

/** storage/sqlite.worker.ts → storage-sqlite.worker: flat, like everything in dist/. */
function workerName(source: string): string {
  return source.replace(/\.ts$/, '').replaceAll(/[\\/]/g, '-')
}

function copyAssets(): void {
  for (const file of ASSETS.flatMap((pattern) => globSync(pattern, { cwd: SRC }))) {
    mkdirSync(dirname(join(DIST, file)), { recursive: true })
    cpSync(join(SRC, file), join(DIST, file))
  }
}

/** Declarations for consumers; `#room/file.ts` in them resolves through dist's own imports map. */
function emitTypes(): void {
  const manifest = { type: 'module', imports: { '#*.ts': './types/*.d.ts' } }
  writeFileSync(join(DIST, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`)
  const options = {
    extends: '../tsconfig.json',
    compilerOptions: {
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      incremental: false,
      rootDir: '../src',
      outDir: './types',
    },
    include: ['../src'],
    exclude: ['../src/**/*.test.ts', '../src/**/*.suite.ts', '../src/**/*.fixture.ts', '../src/console'],
  }
  const project = join(DIST, 'tsconfig.types.json')
  writeFileSync(project, JSON.stringify(options))
  const { status } = spawnSync(process.execPath, [TSC, '-p', project], { stdio: 'inherit' })
  rmSync(project)
  if (status !== 0) throw new Error('Type declarations could not be made; see the messages above')
}

function report(built: readonly string[]): void {
  const files = globSync('*.{mjs,cjs}', { cwd: DIST })
  const kilobytes = files.reduce((sum, file) => sum + statSync(join(DIST, file)).size, 0) / 1024
  console.log(`Built ${built.join(', ')}: ${files.length} files, ${kilobytes.toFixed(0)} KiB in dist/`)
  const missing = Object.entries(ENTRIES).filter(([name]) => !built.includes(name))
  for (const [name, source] of missing) console.log(`Not there yet: ${name} (src/${source})`)
}

await main().catch((error: unknown) => {
  console.error(`Build failed: ${(error as Error).message}`)
  process.exitCode = 1
})
