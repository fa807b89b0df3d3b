/**
 * Finds objects from arguments, files and selectors, like upstream's resource builder. `select` returns a selection or
 * throws; `visit` calls back for each object and goes on after an error.
 */
import type { ServedKind } from '#client/discovery.ts'
import { goQuote } from '#lib/go/text.ts'
import { apiVersionOf, parseApiVersion } from '#meta/kind.ts'
import { matchesLabels, parseSelector } from '#meta/labels.ts'
import { isBadRequest, isNotFound, isResourceExpired, StatusError } from '#meta/status.ts'

import { asError, Failures, failuresOf, KubectlError } from '../errors.ts'
import type { ManifestSource } from '../manifests/manifests.ts'
import { NoKindError } from '../session/mapper.ts'
import type { AnyObject, RequestOptions, Rest } from '../session/rest.ts'
import { readArguments } from './builder-arguments.ts'
import type { Info, SelectOptions, Tuple } from './select-options.ts'

export type Visit = (info: Info) => Promise<void>
type Source = (visit: Visit, onBad: (error: Error) => void) => Promise<void>

/** Throws errors in the arguments before it reads anything. */
export async function select(options: SelectOptions): Promise<Selection> {
  const sources = await fileSources(options)
  const parsed = await readArguments(options)
  const { labelSelector, types, tuples, names } = parsed
  const hasSelector = labelSelector !== undefined || (options.fieldSelector ?? '').trim() !== ''
  if (sources.length > 0) return byPaths(options, sources, parsed)
  if (hasSelector) return bySelector(options, parsed)
  if (tuples.length > 0) {
    if (types.length > 0) {
      throw new KubectlError('you may not specify individual resources and bulk resources in the same call')
    }
    return byTuples(options, tuples)
  }
  if (names.length > 0) return byNames(options, types, names)
  if (types.length > 0) {
    const mapper = await options.session.mapper()
    for (const type of types) await mapper.named(type)
    throw new KubectlError('resource(s) were provided, but no name was specified')
  }
  throw new KubectlError(NOTHING_GIVEN)
}

/** Upstream's text for a line that names no resources. */
const NOTHING_GIVEN = `You must provide one or more resources by argument or filename.
Example resource specifications include:
   '-f rsrc.yaml'
   '--filename=rsrc.json'
   '<resource> <name>'
   '<resource>'`

type ParsedArguments = Awaited<ReturnType<typeof readArguments>>

function byPaths(options: SelectOptions, sources: readonly ManifestSource[], parsed: ParsedArguments): Selection {
  if (parsed.types.length > 0) {
    throw new KubectlError(
      'when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well',
    )
  }
  if (parsed.tuples.length > 0) {
    throw new KubectlError('resource/name arguments cannot be provided when a path is specified')
  }
  const [first] = sources
  const isSingle = sources.length === 1 && first?.name !== 'STDIN'
  const labels = parsed.labelSelector
  const readers = sources.map((source) => manifestReader(options, source))
  return new Selection(options, readers, { isSingle, isList: false, ...(labels !== undefined && { labels }) })
}

async function bySelector(
  options: SelectOptions,
  { labelSelector = '', types, tuples, names }: ParsedArguments,
): Promise<Selection> {
  if (names.length > 0) throw new KubectlError('name cannot be provided when a selector is specified')
  if (tuples.length > 0) {
    throw new KubectlError('selectors and the all flag cannot be used when passing resource/name arguments')
  }
  if (types.length === 0) throw new KubectlError('at least one resource must be specified to use a selector')
  if ((options.subresource ?? '') !== '') {
    throw new KubectlError('subresource cannot be used when bulk resources are specified')
  }
  const kinds = await kindsOf(options, types)
  return new Selection(
    options,
    kinds.map((kind) => listReader(options, kind, labelSelector)),
    { isSingle: false, isList: true, kinds },
  )
}

async function byTuples(options: SelectOptions, tuples: readonly Tuple[]): Promise<Selection> {
  const mapper = await options.session.mapper()
  const kinds: ServedKind[] = []
  for (const { type } of tuples) kinds.push(await mapper.named(type))
  if (options.singleResourceType && new Set(kinds.map(idOf)).size > 1) throw severalTypes()
  const infos = tuples.map(({ name }, at) => named(options, kinds[at] as ServedKind, name))
  return new Selection(options, infos.map(one), { isSingle: tuples.length === 1, isList: false, kinds })
}

async function byNames(options: SelectOptions, types: readonly string[], names: readonly string[]): Promise<Selection> {
  if (types.length === 0) throw new KubectlError('you must provide a resource and a resource name together')
  if (types.length > 1) throw new KubectlError('you must specify only one resource')
  const [kind] = (await kindsOf(options, types)) as [ServedKind]
  const infos = names.map((name) => named(options, kind, name))
  return new Selection(options, infos.map(one), { isSingle: names.length === 1, isList: false, kinds: [kind] })
}

function one(info: Info): Source {
  return (visit) => visit(info)
}

function idOf({ group, version, plural }: ServedKind): string {
  return `${group}/${version}/${plural}`
}

function severalTypes(): KubectlError {
  return new KubectlError('you may only specify a single resource type')
}

/** Each kind once. */
async function kindsOf(
  { session, singleResourceType }: SelectOptions,
  types: readonly string[],
): Promise<ServedKind[]> {
  if (singleResourceType && types.length > 1) throw severalTypes()
  const mapper = await session.mapper()
  const kinds = new Map<string, ServedKind>()
  for (const type of types) {
    const kind = await mapper.named(type)
    if (!kinds.has(idOf(kind))) kinds.set(idOf(kind), kind)
  }
  return [...kinds.values()]
}

function named(options: SelectOptions, kind: ServedKind, name: string): Info {
  const { namespace = '', allNamespaces, subresource } = options
  if (kind.namespaced && (namespace === '' || allNamespaces)) {
    throw new KubectlError(
      allNamespaces
        ? 'a resource cannot be retrieved by name across all namespaces'
        : 'namespace may not be empty when retrieving a resource by name',
    )
  }
  return { kind, namespace: kind.namespaced ? namespace : '', name, source: '', ...(subresource && { subresource }) }
}

async function fileSources({ files, io, stdinInUse = false }: SelectOptions): Promise<ManifestSource[]> {
  const { filename = [], kustomize = '', recursive = false } = files ?? {}
  if (kustomize !== '') refuseFiles(filename, recursive)
  const sources: ManifestSource[] = []
  const errors: Error[] = []
  for (const name of filename) {
    try {
      sources.push(...(await sourcesAt(name, recursive, io)))
    } catch (error) {
      errors.push(asError(error))
    }
  }
  const stdinUses = sources.filter((source) => source.name === 'STDIN').length + (stdinInUse ? 1 : 0)
  if (stdinUses > 1) errors.push(new KubectlError('standard input cannot be used for multiple arguments'))
  if (kustomize !== '') sources.push(await kustomization(kustomize, io))
  const failed = failuresOf(errors)
  if (failed !== undefined) throw failed
  return sources
}

function refuseFiles(filename: readonly string[], recursive: boolean): void {
  if (filename.length > 0) throw new KubectlError('only one of -f or -k can be specified')
  if (recursive) throw new KubectlError("the -k flag can't be used with -f or -R")
}

async function sourcesAt(name: string, recursive: boolean, io: SelectOptions['io']): Promise<ManifestSource[]> {
  // Loaded only for files, because the YAML parser is not needed otherwise.
  const { filesAt, standardInput } = await import('../manifests/manifests.ts')
  if (name === '-') return [standardInput(io)]
  if (!/^https?:\/\//.test(name)) return filesAt(name, recursive, io)
  return [{ name, read: async () => (await import('../manifests/remote-manifest.ts')).readRemote(name) }]
}

async function kustomization(path: string, { cwd }: SelectOptions['io']): Promise<ManifestSource> {
  const { kustomizeText } = await import('../manifests/kustomization.ts')
  return { name: path, read: () => kustomizeText(path, cwd) }
}

function manifestReader(options: SelectOptions, source: ManifestSource): Source {
  return async (visit, onBad) => {
    const text = await source.read().catch((cause: NodeJS.ErrnoException) => {
      if (cause.code === undefined) throw cause
      throw new KubectlError(`open ${source.name}: ${GO_ERRORS.get(cause.code) ?? cause.message}`, { cause })
    })
    const { decodeObject, readDocuments, validationProblem } = await import('../manifests/manifests.ts')
    for (const document of readDocuments(source.name, text)) {
      const problem = options.validate === true ? validationProblem(source.name, document) : undefined
      if (problem !== undefined) throw problem
      let info: Info
      try {
        info = await infoOf(options, source.name, decodeObject(source.name, document) as unknown as AnyObject)
      } catch (error) {
        onBad(asError(error))
        continue
      }
      await visit(info)
    }
  }
}

const GO_ERRORS: ReadonlyMap<string, string> = new Map([
  ['EACCES', 'permission denied'],
  ['ENOENT', 'no such file or directory'],
  ['EISDIR', 'is a directory'],
])

async function infoOf(options: SelectOptions, source: string, object: AnyObject): Promise<Info> {
  const { session, local, checkObject } = options
  checkObject?.(object)
  const { apiVersion = '', kind = '', metadata } = object
  const { name = '', namespace = '' } = metadata
  // Lists are split into items before the mapper looks up their kinds.
  if (isList(object)) return { kind: LIST, namespace, name, source, object }
  if (local === true) return { kind: kindOfItself(object), namespace, name, source, object }
  try {
    return { kind: await (await session.mapper()).ofObject(apiVersion, kind), namespace, name, source, object }
  } catch (cause) {
    if (!(cause instanceof NoKindError)) throw cause
    throw new KubectlError(
      `resource mapping not found for name: ${goQuote(name)} namespace: ${goQuote(namespace)} from ${goQuote(source)}: ${cause.message}\nensure CRDs are installed first`,
      { cause },
    )
  }
}

/** A kind without discovery: it is namespaced if the object has a namespace. */
function kindOfItself({ apiVersion = '', kind = '', metadata }: AnyObject): ServedKind {
  const { group, version } = parseApiVersion(apiVersion)
  return { ...LIST, group, version, kind, namespaced: (metadata.namespace ?? '') !== '' }
}

/** Matches a list of any kind. */
const LIST: ServedKind = {
  group: '',
  version: 'v1',
  kind: 'List',
  plural: 'lists',
  singular: 'list',
  listKind: 'ListList',
  namespaced: false,
  shortNames: [],
  categories: [],
  verbs: [],
  subresources: [],
  isPreferred: true,
}

export function isList(object: AnyObject): boolean {
  return (object.kind ?? '').endsWith('List') && Array.isArray(object['items'])
}

function listReader(options: SelectOptions, kind: ServedKind, labelSelector: string): Source {
  const { namespace = '', allNamespaces, chunkSize, asking = {} } = options
  const fieldSelector = (options.fieldSelector ?? '').trim()
  return async (visit) => {
    const rest = await options.session.rest()
    const where = kind.namespaced && !allNamespaces ? namespace : ''
    let next: string | undefined
    do {
      const query = { ...asking.query, labelSelector, fieldSelector, limit: chunkSize || undefined, continue: next }
      const list = await rest.get({ kind, namespace: where }, { ...asking, query }).catch((error: unknown) => {
        throw listError(error, kind, { labelSelector, fieldSelector })
      })
      await visit({ kind, namespace: where, name: '', source: '', object: list })
      next = (list.metadata as { continue?: string }).continue
    } while (next !== undefined && next !== '')
  }
}

function listError(
  error: unknown,
  { group, version, plural }: ServedKind,
  { labelSelector, fieldSelector }: { labelSelector: string; fieldSelector: string },
): unknown {
  if (isResourceExpired(error) || !(isBadRequest(error) || isNotFound(error))) return error
  if (!(error instanceof StatusError)) return error
  const subject = goQuote(`${group}/${version}, Resource=${plural}`)
  const selected = `Unable to find ${subject} that match label selector ${goQuote(labelSelector)}, field selector ${goQuote(fieldSelector)}`
  const what = labelSelector === '' && fieldSelector === '' ? `Unable to list ${subject}` : selected
  return new StatusError({ ...error.status, message: `${what}: ${error.message}` }, { cause: error })
}

interface Shape {
  /** The selection names exactly one object. */
  readonly isSingle: boolean
  /** The selection names collections. */
  readonly isList: boolean
  readonly labels?: string
  readonly kinds?: readonly ServedKind[]
}

/** A selection, which can be visited once. */
export class Selection {
  readonly isSingle: boolean
  readonly isList: boolean
  /** The kinds in the arguments; empty with files. */
  readonly kinds: readonly ServedKind[]
  readonly #options: SelectOptions
  readonly #sources: readonly Source[]
  readonly #labels: string | undefined

  constructor(options: SelectOptions, sources: readonly Source[], { isSingle, isList, labels, kinds = [] }: Shape) {
    this.#options = options
    this.#sources = sources
    this.isSingle = isSingle
    this.isList = isList
    this.kinds = kinds
    this.#labels = labels
  }

  get sourceCount(): number {
    return this.#sources.length
  }

  /** Throws the first failure. With `continueOnError` it visits everything and throws all failures. */
  async visit(visit: Visit): Promise<void> {
    const { continueOnError = false, session } = this.#options
    const errors: Error[] = []
    const sourceErrors: Error[] = []
    // Stops after an interrupt.
    const isLast = (): boolean => !continueOnError || session.signal.aborted
    const collect = (error: Error): void => {
      if (isLast()) throw error
      errors.push(error)
    }
    const handle = async (info: Info): Promise<void> => {
      try {
        const prepared = await this.#prepare(info)
        if (prepared) await visit(info)
      } catch (error) {
        collect(asError(error))
      }
    }
    for (const source of this.#sources) {
      try {
        await source(
          (info) => this.#flatten(info, handle, collect),
          (error) => {
            if (isLast()) throw error
            sourceErrors.push(error)
          },
        )
      } catch (error) {
        if (isLast()) throw error
        sourceErrors.push(asError(error))
      }
    }
    const failed = failuresOf([...errors, ...groupOf(sourceErrors)])
    if (failed !== undefined) throw failed
  }

  /** All objects and errors at once; with `continueOnError` both may be present. */
  async infos(): Promise<{ readonly infos: Info[]; readonly error: Error | undefined }> {
    const infos: Info[] = []
    const add = async (info: Info): Promise<void> => void infos.push(info)
    const error = await this.visit(add).then(() => undefined, asError)
    return { infos, error }
  }

  async #flatten(info: Info, handle: Visit, onBad: (error: Error) => void): Promise<void> {
    const { object } = info
    const { flatten } = this.#options
    if (!flatten || object === undefined || !isList(object)) return handle(info)
    for (const item of object['items'] as AnyObject[]) {
      if (isList(item)) {
        await this.#flatten({ ...info, object: item }, handle, onBad)
        continue
      }
      const member = await this.#member(info, item).catch((error: unknown) => {
        onBad(error instanceof NoKindError ? new KubectlError(`unable to recognize ${error.message}`) : asError(error))
      })
      if (member !== undefined) await handle(member)
    }
  }

  /** An item of a list as a complete object. Servers omit apiVersion and kind from items. */
  async #member(list: Info, item: AnyObject): Promise<Info> {
    const { object } = list
    const { apiVersion = object?.apiVersion ?? '', kind = object?.kind?.replace(/List$/, '') ?? '' } = item
    const { name = '', namespace = '' } = (item as Partial<AnyObject>).metadata ?? {}
    if (this.#options.local === true) {
      return { kind: kindOfItself(item), namespace, name, source: list.source, object: item }
    }
    const isKnown = list.kind.kind === kind && apiVersionOf(list.kind) === apiVersion
    const served = isKnown ? list.kind : await (await this.#options.session.mapper()).ofObject(apiVersion, kind)
    return { kind: served, namespace, name, source: list.source, object: { ...item, apiVersion, kind } }
  }

  /** Fills in namespace and object; false skips the object. */
  async #prepare(info: Info): Promise<boolean> {
    const { namespace = '', requireNamespace, latest, requireObject = true } = this.#options
    const isRead = info.object !== undefined
    if (!this.isList) placeIn(info, namespace, requireNamespace === true)
    if (this.#labels !== undefined) {
      if (!matchesLabels(parseSelector(this.#labels), info.object?.metadata.labels ?? {})) return false
    }
    if (isRead ? latest === true && info.name !== '' && info.source !== '' : requireObject) {
      info.object = await readObject(await this.#options.session.rest(), info, this.#options.asking)
    }
    return true
  }
}

function groupOf(errors: readonly Error[]): Error[] {
  return errors.length < 2 ? [...errors] : [new Failures(errors)]
}

function placeIn(info: Info, namespace: string, isRequired: boolean): void {
  const { kind, object } = info
  if (!kind.namespaced) {
    info.namespace = ''
    if (object?.metadata?.namespace !== undefined && kind !== LIST) delete object.metadata.namespace
    return
  }
  if (info.namespace === '') {
    info.namespace = namespace
    if (object !== undefined && namespace !== '') object.metadata = { ...object.metadata, namespace }
  } else if (isRequired && info.namespace !== namespace) {
    throw new KubectlError(
      `the namespace from the provided object ${goQuote(info.namespace)} does not match the namespace ${goQuote(namespace)}. You must pass '--namespace=${info.namespace}' to perform this operation.`,
    )
  }
}

/** Reports a missing namespace instead of the missing object. */
export async function readObject(rest: Rest, info: Info, asking: RequestOptions = {}): Promise<AnyObject> {
  const { kind, namespace, name, subresource } = info
  try {
    return await rest.get({ kind, namespace, name, ...(subresource !== undefined && { subresource }) }, asking)
  } catch (error) {
    if (isNotFound(error) && namespace !== '' && namespace !== 'default') {
      await rest.json(`/api/v1/namespaces/${encodeURIComponent(namespace)}`).catch((missing: unknown) => {
        if (isNotFound(missing)) throw missing
      })
    }
    throw error
  }
}
