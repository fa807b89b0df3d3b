/**
 * Builds the OpenAPI paths and operations of a group version: verbs, parameters and kinds. The OpenAPI 2 and 3
 * documents are both built from them.
 */
import type { Kind, Subresource } from '#apis/kinds.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import type { Schema, StructSchema } from '#meta/schema.ts'

import type { CustomRules } from '../registry/resource.ts'

export type Method = 'get' | 'put' | 'post' | 'delete' | 'options' | 'head' | 'patch'

export interface Parameter {
  readonly name: string
  readonly in: 'query' | 'path'
  readonly type: 'string' | 'integer' | 'boolean'
}

export interface Operation {
  readonly method: Method
  readonly id: string
  /** `x-kubernetes-action` and its kind. Absent for discovery. */
  readonly action?: string
  readonly kind?: GroupVersionKind
  readonly parameters: readonly Parameter[]
  /** The kind of the body; `patch` for the four patch types. */
  readonly body?: GroupVersionKind | 'patch'
  /** The response: a kind, or text. */
  readonly answer: GroupVersionKind | 'text'
  /** The success codes. */
  readonly statuses: readonly number[]
  readonly produces: readonly string[]
  /** True for a custom resource, which supports neither protobuf nor strategic merge. */
  readonly isCustom?: boolean
}

export interface ApiPath {
  readonly path: string
  readonly tag: string
  readonly operations: readonly Operation[]
}

/** Information about kinds beyond discovery. */
export interface ApiFacts {
  readonly schemaFor: (gvk: GroupVersionKind) => StructSchema | undefined
  /** True if DELETE returns the object. */
  readonly deleteAnswersObject: (kind: Kind) => boolean
  /** The definition of a custom resource; undefined for all others. */
  readonly customOf: (kind: Kind) => Pick<CustomRules, 'describe' | 'identity'> | undefined
}

export const MEDIA_TYPES: readonly string[] = [
  'application/json',
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
]
const STREAMED = [...MEDIA_TYPES, 'application/json;stream=watch', 'application/vnd.kubernetes.protobuf;stream=watch']

const query = (names: string, type: Parameter['type'] = 'string'): Parameter[] =>
  names.split(' ').map((name) => ({ name, in: 'query', type }))
const inPath = (name: string): Parameter => ({ name, in: 'path', type: 'string' })

const PRETTY = query('pretty')
const SELECT: readonly Parameter[] = [
  ...query('continue fieldSelector labelSelector resourceVersion resourceVersionMatch shardSelector'),
  ...query('limit timeoutSeconds', 'integer'),
  ...query('sendInitialEvents', 'boolean'),
]
const LIST: readonly Parameter[] = [...PRETTY, ...SELECT, ...query('allowWatchBookmarks watch', 'boolean')]
const WRITE = [...PRETTY, ...query('dryRun fieldManager fieldValidation')]
const PATCH = [...WRITE, ...query('force', 'boolean')]
const DELETE = [
  ...PRETTY,
  ...query('dryRun propagationPolicy'),
  ...query('gracePeriodSeconds', 'integer'),
  ...query('ignoreStoreReadErrorWithClusterBreakingPotential orphanDependents', 'boolean'),
]
const STATUS: GroupVersionKind = { group: '', version: 'v1', kind: 'Status' }
export const DELETE_OPTIONS: GroupVersionKind = { group: '', version: 'v1', kind: 'DeleteOptions' }
export const WATCH_EVENT: GroupVersionKind = { group: '', version: 'v1', kind: 'WatchEvent' }
const RESOURCE_LIST: GroupVersionKind = { group: '', version: 'v1', kind: 'APIResourceList' }
const LOG_OPTIONS: GroupVersionKind = { group: '', version: 'v1', kind: 'PodLogOptions' }

/** Every path of the kinds of one group version, its discovery path first. */
export function pathsOf(kinds: readonly Kind[], facts: ApiFacts): ApiPath[] {
  const [first] = kinds
  if (first === undefined) return []
  const tag = `${groupId(first.group)}_${first.version}`
  const id = `get${upperFirst(groupId(first.group))}${upperFirst(first.version)}APIResources`
  const own = { path: `${rootOf(first)}/`, tag, operations: [discoveryOperation(id, RESOURCE_LIST)] }
  return [own, ...kinds.flatMap((kind) => kindPaths(kind, facts).map((path) => ({ ...path, tag })))]
}

/** The same for custom resources, as upstream. */
export function versionPaths(kinds: readonly Kind[], facts: ApiFacts): ApiPath[] {
  const customs = kinds.filter((kind) => facts.customOf(kind) !== undefined)
  if (customs.length === 0) return pathsOf(kinds, facts)
  return [
    ...pathsOf(
      kinds.filter((kind) => !customs.includes(kind)),
      facts,
    ),
    ...customPathsOf(customs, facts),
  ]
}

/** For custom resources upstream documents neither discovery nor watches by path. */
function customPathsOf(kinds: readonly Kind[], facts: ApiFacts): ApiPath[] {
  const drawn = kinds.flatMap((kind) => {
    const tag = `${groupId(kind.group)}_${kind.version}`
    return kindPaths({ ...kind, verbs: CUSTOM_VERBS }, facts).map((path) => ({ ...path, tag }))
  })
  return drawn.map((path) => ({ ...path, operations: path.operations.map(asCustom) }))
}

/** The documented verbs, whatever the definition's state. */
const CUSTOM_VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update']
export const CUSTOM_MEDIA_TYPES: readonly string[] = ['application/json', 'application/yaml']

function asCustom(operation: Operation): Operation {
  const { body: _, ...rest } = operation
  const common = { ...rest, produces: CUSTOM_MEDIA_TYPES, isCustom: true }
  const inPaths = operation.parameters.filter((parameter) => parameter.in === 'path')
  if (operation.action === 'deletecollection') return { ...common, parameters: [...inPaths, ...LIST] }
  const body = operation.body === undefined ? {} : { body: operation.body }
  if (operation.action !== 'get') return { ...common, ...body }
  return { ...common, ...body, parameters: [...operation.parameters, ...query('resourceVersion')] }
}

/** The operation that reads a discovery document. */
export function discoveryOperation(id: string, answer: GroupVersionKind): Operation {
  return { method: 'get', id, parameters: [], answer, statuses: [200], produces: MEDIA_TYPES }
}

/** `/api/v1` or `/apis/apps/v1`. */
export function rootOf({ group, version }: { readonly group: string; readonly version: string }): string {
  return group === '' ? `/api/${version}` : `/apis/${group}/${version}`
}

/** `core`, `apps`, `rbacAuthorization`: a group in tags and operation names. */
export function groupId(group: string): string {
  const words = group === '' ? ['core'] : group.replace(/\.k8s\.io$/, '').split('.')
  return words.map((word, at) => (at === 0 ? word : upperFirst(word))).join('')
}

type Drawn = Omit<ApiPath, 'tag'>

function kindPaths(kind: Kind, facts: ApiFacts): Drawn[] {
  const root = rootOf(kind)
  const place = kind.namespaced ? `${root}/namespaces/{namespace}` : root
  const around = kind.namespaced ? [inPath('namespace')] : []
  const object = `${place}/${kind.plural}/{name}`
  const paths: Drawn[] = [
    { path: `${place}/${kind.plural}`, operations: within(around, collectionOperations(kind)) },
    { path: object, operations: within([...around, inPath('name')], objectOperations(kind, facts)) },
    ...(kind.namespaced ? [{ path: `${root}/${kind.plural}`, operations: everywhere(kind, 'list') }] : []),
    ...watchPaths(kind, around),
    ...kind.subresources.flatMap((part) => partPaths(kind, part, { object, around, facts })),
  ]
  return paths.filter(({ operations }) => operations.length > 0)
}

/** The operations with the parameters of their path. */
function within(parameters: readonly Parameter[], operations: readonly Operation[]): Operation[] {
  return operations.map((operation) => ({ ...operation, parameters: [...parameters, ...operation.parameters] }))
}

function collectionOperations(kind: Kind): Operation[] {
  const list = { group: kind.group, version: kind.version, kind: kind.listKind }
  const all: [verb: string, operation: Operation][] = [
    ['list', reading(kind, { id: idOf('list', kind), action: 'list', parameters: LIST, answer: list })],
    ['create', writing(kind, kind, { method: 'post', id: idOf('create', kind), statuses: [200, 201, 202] })],
    [
      'deletecollection',
      {
        method: 'delete',
        id: idOf('delete', kind, 'Collection'),
        action: 'deletecollection',
        kind,
        parameters: [...DELETE, ...SELECT],
        body: DELETE_OPTIONS,
        answer: STATUS,
        statuses: [200],
        produces: MEDIA_TYPES,
      },
    ],
  ]
  return all.filter(([verb]) => kind.verbs.includes(verb)).map(([, operation]) => operation)
}

function reading(kind: Kind, rest: Pick<Operation, 'id' | 'action' | 'parameters' | 'answer'>): Operation {
  return { ...rest, method: 'get', kind, statuses: [200], produces: STREAMED }
}

function writing(
  body: GroupVersionKind,
  kind: GroupVersionKind,
  { method, id, statuses }: Pick<Operation, 'method' | 'id' | 'statuses'>,
): Operation {
  return { method, id, action: method, kind, parameters: WRITE, body, answer: body, statuses, produces: MEDIA_TYPES }
}

/** Lists over all namespaces. */
function everywhere(kind: Kind, verb: 'list' | 'watch'): Operation[] {
  if (!kind.verbs.includes(verb)) return []
  const id = `${idOf(verb, { ...kind, namespaced: false })}${verb === 'watch' ? 'List' : ''}ForAllNamespaces`
  const list = { group: kind.group, version: kind.version, kind: kind.listKind }
  const which = verb === 'list' ? { action: 'list', answer: list } : { action: 'watchlist', answer: WATCH_EVENT }
  return [reading(kind, { id, parameters: LIST, ...which })]
}

/** The deprecated paths below `watch/`. */
function watchPaths(kind: Kind, around: readonly Parameter[]): Drawn[] {
  if (!kind.verbs.includes('watch')) return []
  const root = `${rootOf(kind)}/watch`
  const place = kind.namespaced ? `${root}/namespaces/{namespace}` : root
  const watching = { parameters: LIST, answer: WATCH_EVENT }
  const many = reading(kind, { id: `${idOf('watch', kind)}List`, action: 'watchlist', ...watching })
  const one = reading(kind, { id: idOf('watch', kind), action: 'watch', ...watching })
  return [
    { path: `${place}/${kind.plural}`, operations: within(around, [many]) },
    { path: `${place}/${kind.plural}/{name}`, operations: within([...around, inPath('name')], [one]) },
    ...(kind.namespaced ? [{ path: `${root}/${kind.plural}`, operations: everywhere(kind, 'watch') }] : []),
  ]
}

function objectOperations(kind: Kind, { deleteAnswersObject }: ApiFacts): Operation[] {
  // Upstream's documents omit that deleting a namespace returns it.
  const answer = deleteAnswersObject(kind) && kind.kind !== 'Namespace' ? kind : STATUS
  const removing: Operation = {
    method: 'delete',
    id: idOf('delete', kind),
    action: 'delete',
    kind,
    parameters: DELETE,
    body: DELETE_OPTIONS,
    answer,
    statuses: [200, 202],
    produces: MEDIA_TYPES,
  }
  return [...changing(kind, kind, kind.verbs, ''), ...(kind.verbs.includes('delete') ? [removing] : [])]
}

/** The operations on an object or a part of it, whose schema is `body`. */
function changing(kind: Kind, body: GroupVersionKind, verbs: readonly string[], suffix: string): Operation[] {
  const id = (verb: string): string => `${idOf(verb, kind)}${suffix}`
  const get: Operation = {
    method: 'get',
    id: id('read'),
    action: 'get',
    kind: body,
    parameters: PRETTY,
    answer: body,
    statuses: [200],
    produces: MEDIA_TYPES,
  }
  const put = writing(body, body, { method: 'put', id: id('replace'), statuses: [200, 201] })
  const patch: Operation = {
    ...put,
    method: 'patch',
    id: id('patch'),
    action: 'patch',
    parameters: PATCH,
    body: 'patch',
  }
  const all: [verb: string, operation: Operation][] = [
    ['get', get],
    ['update', put],
    ['patch', patch],
  ]
  return all.filter(([verb]) => verbs.includes(verb)).map(([, operation]) => operation)
}

interface PartOf {
  /** The path of the object. */
  readonly object: string
  readonly around: readonly Parameter[]
  readonly facts: ApiFacts
}

function partPaths(kind: Kind, part: Subresource, { object, around, facts }: PartOf): Drawn[] {
  const suffix = upperFirst(part.name)
  const path = `${object}/${part.name}`
  const named = [...around, inPath('name')]
  if (part.kind.kind.endsWith('Options')) return connectPaths(kind, part, { path, named, facts })
  if (part.name === 'log') return [{ path, operations: within(named, [logOperation(kind, facts)]) }]
  const create = writing(part.kind, part.kind, {
    method: 'post',
    id: `${idOf('create', kind)}${suffix}`,
    statuses: [200, 201, 202],
  })
  const operations = [
    ...changing(kind, part.kind, part.verbs, suffix),
    ...(part.verbs.includes('create') ? [create] : []),
  ]
  return [{ path, operations: within(named, operations) }]
}

const CONNECT_METHODS: readonly (readonly [verb: string, methods: readonly Method[]])[] = [
  ['get', ['get']],
  ['update', ['put']],
  ['create', ['post']],
  ['delete', ['delete', 'options', 'head']],
  ['patch', ['patch']],
]

interface ConnectPart {
  readonly path: string
  readonly named: readonly Parameter[]
  readonly facts: ApiFacts
}

/** Connector subresources: exec, port-forward, proxy. A proxy also has paths below its own. */
function connectPaths(kind: Kind, part: Subresource, { path, named, facts }: ConnectPart): Drawn[] {
  const options = parametersOf(facts.schemaFor(part.kind))
  const methods = CONNECT_METHODS.flatMap(([verb, all]) => (part.verbs.includes(verb) ? all : []))
  const operations = (more: readonly Parameter[], suffix: string): Operation[] =>
    methods.map((method) => ({
      method,
      id: `${idOf('connect', kind, upperFirst(method))}${upperFirst(part.name)}${suffix}`,
      action: 'connect',
      kind: part.kind,
      parameters: [...named, ...more, ...options],
      answer: 'text',
      statuses: [200],
      produces: ['*/*'],
    }))
  const below = { path: `${path}/{path}`, operations: operations([inPath('path')], 'WithPath') }
  return [{ path, operations: operations([], '') }, ...(part.name === 'proxy' ? [below] : [])]
}

function logOperation(kind: Kind, { schemaFor }: ApiFacts): Operation {
  return {
    method: 'get',
    id: `${idOf('read', kind)}Log`,
    action: 'get',
    kind,
    parameters: [...PRETTY, ...parametersOf(schemaFor(LOG_OPTIONS))],
    answer: 'text',
    statuses: [200],
    produces: ['text/plain', ...MEDIA_TYPES],
  }
}

/** The fields of an options kind as query parameters; fields without a simple type are omitted. */
function parametersOf(options: StructSchema | undefined): Parameter[] {
  const fields = [...(options?.fields.values() ?? [])].filter(({ name }) => name !== 'kind' && name !== 'apiVersion')
  return fields.flatMap(({ name, schema }) => {
    const type = simpleType(schema.type === 'list' ? schema.items : schema)
    return type === undefined ? [] : [{ name, in: 'query', type }]
  })
}

function simpleType({ type }: Schema): Parameter['type'] | undefined {
  if (type === 'string' || type === 'boolean') return type
  return type === 'int32' || type === 'int64' ? 'integer' : undefined
}

/** `patchAppsV1NamespacedDeployment`; `middle` follows the version. */
function idOf(verb: string, { group, version, namespaced, kind }: Kind, middle = ''): string {
  return `${verb}${upperFirst(groupId(group))}${upperFirst(version)}${middle}${namespaced ? 'Namespaced' : ''}${kind}`
}

function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** Moves parameters that all operations of a path share to the path, sorted as in the documents. */
export function sharedParameters({ operations }: ApiPath): {
  readonly shared: readonly Parameter[]
  readonly own: (operation: Operation) => readonly Parameter[]
} {
  const isIn = (parameters: readonly Parameter[], { name, in: place }: Parameter): boolean =>
    parameters.some((other) => other.name === name && other.in === place)
  const [first] = operations
  const shared = (first?.parameters ?? []).filter((each) =>
    operations.every(({ parameters }) => isIn(parameters, each)),
  )
  return {
    shared: shared.toSorted(byName),
    own: ({ parameters }) => parameters.filter((each) => !isIn(shared, each)).toSorted(byName),
  }
}

function byName(one: Parameter, other: Parameter): number {
  if (one.name === other.name) return one.in === other.in ? 0 : one.in === 'path' ? -1 : 1
  return one.name < other.name ? -1 : 1
}
