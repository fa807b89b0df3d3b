/**
 * The paths of a group version and what can be done on each: which verbs, with which parameters, on which kind. Version
 * by version of OpenAPI they are written differently; this is what they have in common.
 */
import type { Kind } from '#apis/kinds.ts'
import type { GroupVersionKind } from '#meta/kind.ts'

export type Method = 'get' | 'put' | 'post' | 'delete' | 'patch'

export interface Parameter {
  readonly name: string
  readonly in: 'query' | 'path'
  readonly type: 'string' | 'integer' | 'boolean'
}

export interface Operation {
  readonly method: Method
  readonly id: string
  /** `x-kubernetes-action`. */
  readonly action: string
  readonly kind: GroupVersionKind
  readonly parameters: readonly Parameter[]
  /** The kind of the body; `patch` for the four patch types. */
  readonly body?: GroupVersionKind | 'patch'
  readonly answer: GroupVersionKind
  readonly created: boolean
}

export interface ApiPath {
  readonly path: string
  readonly parameters: readonly Parameter[]
  readonly operations: readonly Operation[]
}

const query = (names: string, type: Parameter['type'] = 'string'): Parameter[] =>
  names.split(' ').map((name) => ({ name, in: 'query', type }))

const LIST: readonly Parameter[] = [
  ...query('allowWatchBookmarks', 'boolean'),
  ...query('continue fieldSelector labelSelector'),
  ...query('limit', 'integer'),
  ...query('resourceVersion resourceVersionMatch'),
  ...query('sendInitialEvents', 'boolean'),
  ...query('shardSelector'),
  ...query('timeoutSeconds', 'integer'),
  ...query('watch', 'boolean'),
]
const WRITE = query('dryRun fieldManager fieldValidation')
const PATCH = [...WRITE, ...query('force', 'boolean')]
const DELETE = [
  ...query('dryRun'),
  ...query('gracePeriodSeconds', 'integer'),
  ...query('ignoreStoreReadErrorWithClusterBreakingPotential orphanDependents', 'boolean'),
  ...query('propagationPolicy'),
]
const PRETTY = query('pretty')
const STATUS: GroupVersionKind = { group: '', version: 'v1', kind: 'Status' }
const DELETE_OPTIONS: GroupVersionKind = { group: '', version: 'v1', kind: 'DeleteOptions' }

/** Every path of the kinds of one group version. */
export function pathsOf(kinds: readonly Kind[]): ApiPath[] {
  return kinds.flatMap(kindPaths)
}

/** `/api/v1` or `/apis/apps/v1`. */
export function rootOf({ group, version }: { readonly group: string; readonly version: string }): string {
  return group === '' ? `/api/${version}` : `/apis/${group}/${version}`
}

function kindPaths(kind: Kind): ApiPath[] {
  const root = rootOf(kind)
  const place = kind.namespaced ? `${root}/namespaces/{namespace}` : root
  const inNamespace: Parameter[] = kind.namespaced ? [{ name: 'namespace', in: 'path', type: 'string' }] : []
  const named: Parameter[] = [{ name: 'name', in: 'path', type: 'string' }]
  const collection = {
    path: `${place}/${kind.plural}`,
    parameters: [...inNamespace, ...PRETTY],
    operations: collectionOperations(kind),
  }
  const object = {
    path: `${place}/${kind.plural}/{name}`,
    parameters: [...named, ...inNamespace, ...PRETTY],
    operations: objectOperations(kind),
  }
  const everywhere = {
    path: `${root}/${kind.plural}`,
    parameters: [...PRETTY, ...LIST],
    operations: everywhereOperations(kind),
  }
  const parts = kind.subresources.map((part) => ({
    path: `${object.path}/${part.name}`,
    parameters: object.parameters,
    operations: partOperations(kind, part.name, part.kind, part.verbs),
  }))
  return [collection, object, ...(kind.namespaced ? [everywhere] : []), ...parts].filter(
    ({ operations }) => operations.length > 0,
  )
}

function collectionOperations(kind: Kind): Operation[] {
  const list = { group: kind.group, version: kind.version, kind: kind.listKind }
  const all: [string, Omit<Operation, 'id' | 'kind'>][] = [
    ['list', { method: 'get', action: 'list', parameters: LIST, answer: list, created: false }],
    ['create', { method: 'post', action: 'post', parameters: WRITE, body: kind, answer: kind, created: true }],
    [
      'deletecollection',
      {
        method: 'delete',
        action: 'deletecollection',
        parameters: [...DELETE, ...LIST],
        body: DELETE_OPTIONS,
        answer: STATUS,
        created: false,
      },
    ],
  ]
  const prefix: Record<string, string> = { list: 'list', create: 'create', deletecollection: 'deleteCollection' }
  return all
    .filter(([verb]) => kind.verbs.includes(verb))
    .map(([verb, rest]) => ({ ...rest, id: idOf(prefix[verb] ?? verb, kind), kind }))
}

function everywhereOperations(kind: Kind): Operation[] {
  if (!kind.verbs.includes('list')) return []
  const answer = { group: kind.group, version: kind.version, kind: kind.listKind }
  const id = `${idOf('list', kind).replace('Namespaced', '')}ForAllNamespaces`
  return [{ method: 'get', id, action: 'list', kind, parameters: [], answer, created: false }]
}

function objectOperations(kind: Kind): Operation[] {
  return verbOperations(kind, kind, kind.verbs, '')
}

function partOperations(kind: Kind, name: string, body: GroupVersionKind, verbs: readonly string[]): Operation[] {
  return verbOperations(kind, body, verbs, upperFirst(name))
}

function verbOperations(kind: Kind, body: GroupVersionKind, verbs: readonly string[], suffix: string): Operation[] {
  const all: [verb: string, prefix: string, rest: Omit<Operation, 'id' | 'kind'>][] = [
    ['get', 'read', { method: 'get', action: 'get', parameters: [], answer: body, created: false }],
    ['update', 'replace', { method: 'put', action: 'put', parameters: WRITE, body, answer: body, created: true }],
    [
      'patch',
      'patch',
      { method: 'patch', action: 'patch', parameters: PATCH, body: 'patch', answer: body, created: true },
    ],
    [
      'delete',
      'delete',
      { method: 'delete', action: 'delete', parameters: DELETE, body: DELETE_OPTIONS, answer: STATUS, created: false },
    ],
    ['create', 'create', { method: 'post', action: 'post', parameters: WRITE, body, answer: body, created: true }],
  ]
  return all
    .filter(([verb]) => verbs.includes(verb) && !(suffix === '' && verb === 'create'))
    .map(([, prefix, rest]) => ({ ...rest, id: `${idOf(prefix, kind)}${suffix}`, kind: body }))
}

/** `patchAppsV1NamespacedDeployment`. */
function idOf(verb: string, { group, version, namespaced, kind }: Kind): string {
  const [first = ''] = group.split('.')
  return `${verb}${upperFirst(group === '' ? 'core' : first)}${upperFirst(version)}${namespaced ? 'Namespaced' : ''}${kind}`
}

function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
