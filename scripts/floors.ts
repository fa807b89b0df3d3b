/**
 * The floors of the house as data, and the check that nothing climbs. Pure: sources in, complaints out, so the test
 * can plant every violation. docs/architecture.md draws the same picture for people.
 */
import { posix } from 'node:path'

const STATE = ['lib', 'meta', 'cel', 'apis', 'model'] as const
const COMPONENT = [...STATE, 'client'] as const
const SERVING = [...STATE, 'storage', 'apiserver'] as const
/** All that a whole cluster is made of. */
const WHOLE = [
  ...SERVING,
  'client',
  'control-plane',
  'controllers',
  'scheduler',
  'kubelet',
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
  client: STATE,
  apiserver: [...STATE, 'storage'],
  resources: SERVING,
  admission: SERVING,
  apiextensions: SERVING,
  aggregation: SERVING,
  // Controllers of the API server itself are clients of it, such as leader-election/.
  'control-plane': [...SERVING, 'client', 'resources', 'admission', 'apiextensions', 'aggregation'],
  controllers: COMPONENT,
  scheduler: COMPONENT,
  kubelet: COMPONENT,
  proxy: COMPONENT,
  network: COMPONENT,
  dns: COMPONENT,
  ingress: COMPONENT,
  cloud: COMPONENT,
  kustomize: ['lib', 'meta', 'apis'],
  kubectl: [...COMPONENT, 'kustomize'],
  provision: COMPONENT,
  supervisor: COMPONENT,
  cluster: [...WHOLE, 'resources'],
  dashboard: ['meta', 'apis'],
  testing: [...WHOLE, 'resources', 'admission', 'apiextensions', 'aggregation', 'cluster'],
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
  ],
}

/** Names that say nothing about what lives inside. */
const BANNED_NAMES = new Set(['utils', 'helpers', 'common', 'misc', 'types', 'constants'])

/**
 * Files beside an `index.ts` that are not on its shelf: the shape of the things on it, or what runs them. Every other
 * file of such a folder must be imported by the index.
 */
const STRUCTURAL: Readonly<Record<string, readonly string[]>> = {
  storage: ['auto-compaction', 'backend', 'event-feed', 'leases', 'ordered-tree', 'write-check'],
  'apiserver/authenticators': ['authenticator'],
  'apiserver/authorizers': ['authorizer', 'follow'],
  resources: ['created-at', 'expressions', 'reviews', 'webhook-client', 'workload'],
  admission: ['chain', 'metrics', 'plugin'],
  'kubectl/commands': ['get-output', 'get-watch'],
  'kubectl/generators': ['generator', 'sources'],
  controllers: [
    'adoption',
    'attachable',
    'cache',
    'controller',
    'disruption-plan',
    'expectations',
    'gates',
    'in-rounds',
    'measured',
    'manager',
    'node-events',
    'node-pods',
    'operations',
    'pod-creation',
    'pods-by-claim',
    'replica-keeper',
    'replicas',
    'revisions',
    'root-bundle',
    'selection',
    'served-kinds',
    'service-pods',
    'settings',
    'waiting',
  ],
}

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
  if (!Object.hasOwn(ROOMS, room)) {
    complaints.push(
      `${path}: room "${room}" is not listed; add it to ROOMS in scripts/floors.ts with what it may import`,
    )
  }
  for (const part of path.split('/')) {
    const name = part.replace(/(\.test|\.suite)?\.ts$/, '')
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
  if (!files.has(target) && !target.endsWith('.json')) complaints.push(`${path}: "${specifier}" does not exist`)
  return complaints
}

function checkOutside({ path, room }: Source, specifier: string): string[] {
  return room === 'dashboard' && specifier.startsWith('node:')
    ? [`${path}: the dashboard runs in a browser: no "${specifier}"`]
    : []
}

function mayImport({ path, room }: Source, target: string): boolean {
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

function checkShelves(sources: readonly Source[]): string[] {
  const complaints: string[] = []
  for (const index of sources.filter(({ path }) => path.endsWith('/index.ts'))) {
    const folder = posix.dirname(index.path)
    const listed = new Set(index.imports.map(({ specifier }) => resolve(index.path, specifier)))
    for (const { path } of sources) {
      const isShelfFile =
        posix.dirname(path) === folder && path !== index.path && !/\.(test|suite|worker|fixture)\.ts$/.test(path)
      const structural = STRUCTURAL[folder]?.includes(posix.basename(path, '.ts')) ?? false
      if (isShelfFile && !structural && !listed.has(path)) {
        complaints.push(`${path}: not listed in ${index.path}; add its line there`)
      }
    }
  }
  return complaints
}

/** Rings of files that import each other, types included: a ring of types is a ring in the reader's head. */
function findCycles(sources: readonly Source[]): string[] {
  const graph = new Map(
    sources.map(({ path, imports }) => [
      path,
      imports.filter(({ lazy }) => !lazy).flatMap(({ specifier }) => resolve(path, specifier) ?? []),
    ]),
  )
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
