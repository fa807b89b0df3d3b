/**
 * Request info: verb, resource and name of a request, from its method and path alone.
 * `/apis/apps/v1/namespaces/a/deployments/web/scale` is a get of the subresource `scale` of the deployment `web`.
 * Below `/past/<moment>` the same paths name the state at a moment.
 */

export type Verb =
  | 'get'
  | 'list'
  | 'watch'
  | 'create'
  | 'update'
  | 'patch'
  | 'delete'
  | 'deletecollection'
  | 'head'
  | 'options'
  | 'proxy'
  | ''

export interface RequestInfo {
  /** For resources one of the API's verbs, otherwise the HTTP method in lower case. */
  readonly verb: string
  readonly path: string
  readonly isResource: boolean
  /** `api` or `apis`; empty for other paths. */
  readonly apiPrefix: string
  readonly group: string
  readonly version: string
  readonly namespace: string
  readonly resource: string
  readonly subresource: string
  /** Empty for collections. */
  readonly name: string
  /** The path after the subresource, for proxying. */
  readonly rest: readonly string[]
  /** Selectors of a list, watch or deletecollection, unparsed. Authorizers may allow only a selection. */
  readonly fieldSelector?: string
  readonly labelSelector?: string
  /** The moment of the state that the request reads, as in the path; absent: now. `path` is then the path after it. */
  readonly moment?: string
}

/** The path of a request that reads an earlier state: `/past/-2h/api/v1/pods`. */
const PAST = /^\/past\/([^/]+)(\/.*)?$/

const VERBS: ReadonlyMap<string, Verb> = new Map([
  ['POST', 'create'],
  ['GET', 'get'],
  ['HEAD', 'get'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['DELETE', 'delete'],
])

/** Subresources of a namespace itself, which would otherwise parse as resources inside it. */
const NAMESPACE_PARTS: ReadonlySet<string> = new Set(['status', 'finalize'])

/** Path segments are percent-decoded; a malformed one stays unchanged and matches nothing. */
export function requestInfoOf(method: string, path: string, query: URLSearchParams | undefined): RequestInfo {
  const past = path.startsWith('/past/') ? PAST.exec(path) : null
  if (past === null) return presentInfoOf(method, path, query)
  const [, moment = '', rest = '/'] = past
  return { ...presentInfoOf(method, rest, query), moment: decodeSegment(moment) }
}

function presentInfoOf(method: string, path: string, query: URLSearchParams | undefined): RequestInfo {
  const parts = segmentsOf(path)
  const apiPrefix = parts[0] ?? ''
  if ((apiPrefix !== 'api' && apiPrefix !== 'apis') || parts.length < 3) {
    return { ...NO_RESOURCE, verb: method.toLowerCase(), path }
  }
  // /api/v1/… has no group segment. /apis/apps/v1/… has one, and is only discovery without a third segment.
  const at = apiPrefix === 'api' ? 1 : 2
  const group = apiPrefix === 'api' ? '' : (parts[1] ?? '')
  const version = parts[at] ?? ''
  if (parts.length === at + 1) {
    return { ...NO_RESOURCE, verb: method.toLowerCase(), path, apiPrefix, group, version }
  }
  const special = legacyPrefix(parts[at + 1])
  const { namespace, resource, subresource, name, rest } = placeOf(parts, special === undefined ? at + 1 : at + 2)
  const chosen = verbOf(method, special, name, query)
  const verb = typeof chosen === 'string' ? chosen : chosen.verb
  const known = {
    verb,
    path,
    isResource: true,
    apiPrefix,
    group,
    version,
    namespace,
    resource,
    subresource,
    name,
    rest,
  }
  return typeof chosen === 'string' ? known : { ...known, ...chosen }
}

function segmentsOf(path: string): string[] {
  const parts = path.split('/')
  // The only empty segment is nearly always the one before the first slash.
  if (parts[0] === '') parts.shift()
  return parts.includes('') ? parts.filter((part) => part !== '') : parts
}

const NO_RESOURCE: Omit<RequestInfo, 'verb' | 'path'> = {
  isResource: false,
  apiPrefix: '',
  group: '',
  version: '',
  namespace: '',
  resource: '',
  subresource: '',
  name: '',
  rest: [],
}

/** For operations that no request caused. */
export const NO_REQUEST: RequestInfo = { ...NO_RESOURCE, verb: '', path: '' }

/** `/api/v1/watch/pods` and `/api/v1/proxy/…`: deprecated forms that predate query parameters and subresources. */
function legacyPrefix(first: string | undefined): 'watch' | 'proxy' | undefined {
  return first === 'watch' || first === 'proxy' ? first : undefined
}

type PathTarget = Pick<RequestInfo, 'namespace' | 'resource' | 'subresource' | 'name' | 'rest'>

const NOTHING_MORE: readonly string[] = []

/** The target that the segments from `at` on name. */
function placeOf(parts: readonly string[], at: number): PathTarget {
  const segment = (offset: number): string => decodeSegment(parts[at + offset] ?? '')
  const isInside = segment(0) === 'namespaces' && parts.length > at + 2 && !NAMESPACE_PARTS.has(segment(2))
  const namespace = segment(0) === 'namespaces' ? segment(1) : ''
  const from = isInside ? 2 : 0
  const rest = parts.length > at + from + 3 ? parts.slice(at + from + 3).map(decodeSegment) : NOTHING_MORE
  return { namespace, resource: segment(from), name: segment(from + 1), subresource: segment(from + 2), rest }
}

type Chosen = Partial<RequestInfo> & { readonly verb: string }

function verbOf(
  method: string,
  special: 'watch' | 'proxy' | undefined,
  name: string,
  query: URLSearchParams | undefined,
): string | Chosen {
  if (special !== undefined) return { verb: special, ...selectorsOf(query) }
  const verb = VERBS.get(method) ?? ''
  if (name !== '' || (verb !== 'get' && verb !== 'delete')) return verb
  // A right to delete one object does not include deleting the collection.
  if (verb === 'delete') return { verb: 'deletecollection', ...selectorsOf(query), name: '' }
  const watch = query?.get('watch') ?? null
  return { verb: watch === null || watch === 'false' || watch === '0' ? 'list' : 'watch', ...selectorsOf(query) }
}

/**
 * `metadata.name=x` makes x the name for authorization, so that a right to one object includes listing and watching it.
 */
function selectorsOf(query: URLSearchParams | undefined): Partial<RequestInfo> {
  const fieldSelector = query?.get('fieldSelector') ?? ''
  const labelSelector = query?.get('labelSelector') ?? ''
  const name = fieldSelector
    .split(',')
    .map((term) => /^metadata\.name==?([^!=]+)$/.exec(term)?.[1])
    .find((found) => found !== undefined)
  return {
    ...(name === undefined ? {} : { name }),
    ...(fieldSelector === '' ? {} : { fieldSelector }),
    ...(labelSelector === '' ? {} : { labelSelector }),
  }
}

function decodeSegment(segment: string): string {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
