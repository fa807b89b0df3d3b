/**
 * The layering rules of the sources as data, and the check that no import points upwards. Pure: sources in, complaints
 * out, so that its test can plant every violation. docs/architecture.md draws the same picture.
 */
import { posix } from 'node:path'

import { checkFolders } from './folder-order.ts'

const STATE = ['lib', 'meta', 'cel', 'apis', 'model'] as const
const COMPONENT = [...STATE, 'client'] as const
const SERVING = [...STATE, 'storage', 'auth', 'component', 'apiserver'] as const
/** All that a whole cluster is made of. */
const WHOLE = [
  ...SERVING,
  'client',
  'reconcile',
  'control-plane',
  'controllers',
  'scheduler',
  'cri',
  'containerd',
  'kubelet',
  'simulated-node',
  'proxy',
  'network',
  'dns',
  'ingress',
  'cloud',
] as const

/** Each room and the rooms it may import. A room not listed here does not exist. */
export const ROOMS: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  meta: ['lib'],
  cel: ['lib', 'meta'],
  apis: ['lib', 'meta'],
  model: ['lib', 'meta', 'cel', 'apis'],
  storage: STATE,
  // What the store has dropped, in a file of its own.
  history: [...STATE, 'storage'],
  client: STATE,
  auth: STATE,
  // The parts that every program of a cluster has: a secure port, pages, gates, flags, leader election.
  component: [...COMPONENT, 'auth'],
  reconcile: COMPONENT,
  apiserver: [...STATE, 'storage', 'auth', 'component'],
  resources: SERVING,
  admission: SERVING,
  apiextensions: SERVING,
  aggregation: SERVING,
  controllers: [...COMPONENT, 'reconcile'],
  scheduler: COMPONENT,
  // It repeats decisions of the scheduler and the controllers, with the default gates of component.
  explain: [...COMPONENT, 'auth', 'component', 'reconcile', 'scheduler', 'controllers'],
  // Controllers of the API server itself are clients of it, such as leader-election/.
  'control-plane': [
    ...SERVING,
    'history',
    'client',
    'explain',
    'resources',
    'admission',
    'apiextensions',
    'aggregation',
  ],
  cri: ['lib', 'apis'],
  containerd: [...STATE, 'cri'],
  kubelet: [...COMPONENT, 'auth', 'component', 'cri'],
  // It decides about pods with the functions of the kubelet.
  'simulated-node': [...COMPONENT, 'kubelet'],
  proxy: COMPONENT,
  network: COMPONENT,
  dns: COMPONENT,
  ingress: COMPONENT,
  cloud: [...COMPONENT, 'reconcile'],
  kustomize: ['lib', 'meta', 'apis'],
  kubectl: [...COMPONENT, 'explain', 'kustomize'],
  provision: [...COMPONENT, 'cri', 'containerd'],
  supervisor: COMPONENT,
  cluster: [...WHOLE, 'resources'],
  // The agent of a managed cluster.
  'cluster-agent': [...COMPONENT, 'auth', 'component', 'supervisor'],
  // The server of many clusters: its own cluster in the process, people, tunnels and the proxy.
  management: [...WHOLE, 'resources', 'cluster', 'provision', 'supervisor', 'cluster-agent'],
  // The page in the browser. Nothing of the server is in it.
  console: ['lib', 'meta', 'apis', 'model'],
  testing: [...WHOLE, 'explain', 'resources', 'admission', 'apiextensions', 'aggregation', 'cluster'],
  cmd: [
    ...WHOLE,
    'resources',
    'admission',
    'apiextensions',
    'aggregation',
    'cluster',
    'kubectl',
    'provision',
    'supervisor',
    'cluster-agent',
    'management',
  ],
}

/** `test/kits`, imported as `#kits/…`: simulations and fakes for tests. They may import every room; no source imports them. */
const KITS = 'kits'

/** Names that say nothing about what lives inside. */
const BANNED_NAMES = new Set(['utils', 'helpers', 'common', 'misc', 'types', 'constants'])

interface Import {
  readonly specifier: string
  /** Erased at run time. */
  readonly typeOnly: boolean
  /** `import(…)`: loaded later, so it cannot tie a knot at load time. */
  readonly lazy: boolean
}

interface Source {
  readonly path: string
  readonly room: string
  readonly imports: readonly Import[]
}

/** Every complaint about `files` (path relative to `src/` → text), in order of path. Empty: the house stands. */
export function checkFloors(files: ReadonlyMap<string, string>): string[] {
  const sources = [...files].filter(([path]) => path.includes('/')).map(([path, text]) => readSource(path, text))
  return [
    ...[...files].flatMap(([path, text]) => checkHead(path, text)),
    ...sources.flatMap(checkNames),
    ...sources.flatMap((source) => source.imports.flatMap((found) => checkImport(source, found, files))),
    ...checkShelves(sources),
    ...findCycles(sources),
  ]
}

/** Complaints about the folders inside rooms: circles, and too many files. */
export function checkInside(files: ReadonlyMap<string, string>): string[] {
  const sources = [...files]
    .filter(([path]) => path.includes('/') && !path.startsWith('apis/'))
    .map(([path, text]) => readSource(path, text))
  const indexes = sources.filter(({ path }) => path.endsWith('/index.ts'))
  return checkFolders(
    sources.map((source) => ({ path: source.path, targets: targetsOf(source) })),
    new Set(indexes.flatMap(({ path, imports }) => imports.map(({ specifier }) => resolve(path, specifier) ?? ''))),
  )
}

/** Every file that Node loads when it loads `entry`: types and `import()` do not count. */
export function loadedFiles(files: ReadonlyMap<string, string>, entry: string): Set<string> {
  const loaded = new Set([entry])
  for (const path of loaded) {
    const { imports } = readSource(path, files.get(path) ?? '')
    const values = imports.filter(({ lazy, typeOnly }) => !lazy && !typeOnly)
    for (const { specifier } of values) {
      const target = resolve(path, specifier)
      if (target !== undefined && files.has(target)) loaded.add(target)
    }
  }
  return loaded
}

/** Sources that no program and no entry of the package imports, not even for a type or lazily: code for tests only. */
export function unreachedFiles(files: ReadonlyMap<string, string>, entries: readonly string[]): string[] {
  const reached = new Set(entries)
  for (const path of reached) {
    for (const { specifier } of readImports(files.get(path) ?? '')) {
      const target = resolve(path, specifier)
      if (target !== undefined) reached.add(target)
    }
  }
  return [...files.keys()].filter((path) => !reached.has(path) && !isForTests(path))
}

function isForTests(path: string): boolean {
  return path.startsWith(`${KITS}/`) || /\.(test|suite|fixture)\.ts$/.test(path)
}

/** The files of `src` that a source imports when it is loaded. */
function targetsOf({ path, imports }: Source): string[] {
  return imports.filter(({ lazy }) => !lazy).flatMap(({ specifier }) => resolve(path, specifier) ?? [])
}

/** The formatter takes a head for part of the first import, and moves both when another import comes to stand first. */
function checkHead(path: string, text: string): string[] {
  const isDisplaced = /^import[^]*?\*\/\nimport /.test(text)
  return isDisplaced ? [`${path}: its head has slipped below the first import; put it back at the beginning`] : []
}

function readSource(path: string, text: string): Source {
  return { path, room: path.slice(0, path.indexOf('/')), imports: readImports(text) }
}

const IMPORT =
  /\bimport\s+(type\s[^'"]*?\bfrom\s*)?'([^']+)'|\b(?:import|export)\s+(type\s)?[^'";]*?\bfrom\s*'([^']+)'|\bimport\(\s*'([^']+)'/g

function readImports(text: string): Import[] {
  const code = text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '')
  return [...code.matchAll(IMPORT)].map(([, typeA, bare, typeB, from, lazy]) => ({
    specifier: bare ?? from ?? lazy ?? '',
    typeOnly: typeA !== undefined || typeB !== undefined,
    lazy: lazy !== undefined,
  }))
}

function checkNames({ path, room }: Source): string[] {
  const complaints: string[] = []
  if (room !== KITS && !Object.hasOwn(ROOMS, room)) {
    complaints.push(
      `${path}: room "${room}" is not listed; add it to ROOMS in scripts/floors.ts with what it may import`,
    )
  }
  for (const part of path.split('/')) {
    const name = part.replace(/(\.test|\.suite)?\.tsx?$/, '')
    if (BANNED_NAMES.has(name)) complaints.push(`${path}: "${name}" says nothing; name the file for what lives there`)
  }
  return complaints
}

function checkImport(source: Source, { specifier }: Import, files: ReadonlyMap<string, string>): string[] {
  const { path, room } = source
  const target = resolve(path, specifier)
  if (target === undefined) return checkOutside(source, specifier)
  const complaints: string[] = []
  const targetRoom = target.slice(0, target.indexOf('/'))
  if (!specifier.startsWith('#') && targetRoom !== room) {
    complaints.push(`${path}: "${specifier}" leaves the room; write "#${target}"`)
  }
  if (specifier.startsWith('#') && targetRoom === room) {
    complaints.push(`${path}: "${specifier}" is in the same room; import it by its relative path`)
  }
  if (targetRoom !== room && !mayImport(source, targetRoom)) {
    complaints.push(
      `${path}: room "${room}" may not import "${targetRoom}" ("${specifier}"); what both need belongs on a lower floor`,
    )
  }
  if (!files.has(target) && !/\.(?:json|css)$/.test(target)) complaints.push(`${path}: "${specifier}" does not exist`)
  return complaints
}

function checkOutside({ path, room }: Source, specifier: string): string[] {
  if (specifier.startsWith('.')) return [`${path}: "${specifier}" leaves src; a test imports test/kits as "#kits/…"`]
  return room === 'console' && specifier.startsWith('node:') && !isForTests(path)
    ? [`${path}: the console runs in a browser: no "${specifier}"`]
    : []
}

function mayImport({ path, room }: Source, target: string): boolean {
  if (target === KITS) return isForTests(path)
  if (room === KITS) return true
  if (target === 'testing') return path.endsWith('.test.ts')
  return ROOMS[room]?.includes(target) ?? false
}

/** The path under `src/` that an in-house specifier names; undefined for packages and built-ins. */
function resolve(path: string, specifier: string): string | undefined {
  if (specifier.startsWith('#')) return specifier.slice(1)
  if (!specifier.startsWith('.')) return undefined
  const target = posix.join(posix.dirname(path), specifier)
  return target.startsWith('..') ? undefined : target
}

/** A file beside an `index.ts` is listed there, unless another file of the sources imports it. */
function checkShelves(sources: readonly Source[]): string[] {
  const written = sources.filter(({ path }) => !isForTests(path))
  const imported = new Set(
    written.flatMap(({ path, imports }) => imports.map(({ specifier }) => resolve(path, specifier))),
  )
  const shelves = new Map(
    sources.flatMap(({ path }) => (path.endsWith('/index.ts') ? [[posix.dirname(path), path]] : [])),
  )
  return sources.flatMap(({ path }) => {
    const index = shelves.get(posix.dirname(path))
    const isFree = index === undefined || index === path || /\.(test|suite|worker|fixture)\.ts$/.test(path)
    return isFree || imported.has(path) ? [] : [`${path}: not listed in ${index}; add its line there`]
  })
}

/** Rings of files that import each other, types included: a ring of types is a ring in the reader's head. */
function findCycles(sources: readonly Source[]): string[] {
  const graph = new Map(sources.map((source) => [source.path, targetsOf(source)]))
  const done = new Set<string>()
  const complaints: string[] = []
  const visit = (path: string, trail: readonly string[]): void => {
    const at = trail.indexOf(path)
    if (at >= 0) complaints.push(`${path}: import cycle: ${[...trail.slice(at), path].join(' → ')}`)
    if (at >= 0 || done.has(path)) return
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path])
    done.add(path)
  }
  for (const { path } of sources) visit(path, [])
  return complaints
}
