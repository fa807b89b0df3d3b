/**
 * Request info: what a request is about, from its method and path alone. `/apis/apps/v1/namespaces/a/deployments/web/scale`
 * is a get of the subresource `scale` of the deployment `web` in namespace `a`. Everything after this works on the
 * answer: authorization, audit, fairness, routing. The path is split by hand because every request passes here.
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
  /** What follows the subresource: the path to proxy to. */
  readonly rest: readonly string[]
  /** Of a list, watch or delete of many, as they came: some may only look at a part. */
  readonly fieldSelector?: string
  readonly labelSelector?: string
}

const VERBS: ReadonlyMap<string, Verb> = new Map([
  ['POST', 'create'],
  ['GET', 'get'],
  ['HEAD', 'get'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['DELETE', 'delete'],
])

/** Subresources of a namespace itself, which would otherwise read as resources inside it. */
const NAMESPACE_PARTS: ReadonlySet<string> = new Set(['status', 'finalize'])

/** Path segments are percent-decoded; a malformed one is kept as it came, and names nothing. */
export function requestInfoOf(method: string, path: string, query: URLSearchParams | undefined): RequestInfo {
  const parts = path.split('/').filter((part) => part !== '')
  const plain: RequestInfo = { ...NO_RESOURCE, verb: method.toLowerCase(), path }
  const [prefix = ''] = parts
  if ((prefix !== 'api' && prefix !== 'apis') || parts.length < 3) return plain
  // /api/v1/… has no group segment; /apis/apps/v1/… has, and is only discovery without a third one.
  const [group, version, ...rest] = prefix === 'api' ? ['', parts[1] ?? '', ...parts.slice(2)] : parts.slice(1)
  if (rest.length === 0) return { ...plain, apiPrefix: prefix, group: group ?? '', version: version ?? '' }
  const special = prefix === 'api' || prefix === 'apis' ? legacyPrefix(rest) : undefined
  const place = placeOf((special === undefined ? rest : rest.slice(1)).map(decodeSegment))
  const base = { ...plain, isResource: true, apiPrefix: prefix, group: group ?? '', version: version ?? '', ...place }
  return { ...base, ...verbOf(method, special, base, query) }
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

/** For what no request caused. */
export const NO_REQUEST: RequestInfo = { ...NO_RESOURCE, verb: '', path: '' }

/** `/api/v1/watch/pods` and `/api/v1/proxy/…`: forms from before there were query parameters and subresources. */
function legacyPrefix([first]: readonly string[]): 'watch' | 'proxy' | undefined {
  return first === 'watch' || first === 'proxy' ? first : undefined
}

type Place = Pick<RequestInfo, 'namespace' | 'resource' | 'subresource' | 'name' | 'rest'>

function placeOf(parts: readonly string[]): Place {
  const [first = '', second, third] = parts
  const inNamespace =
    first === 'namespaces' && second !== undefined && third !== undefined && !NAMESPACE_PARTS.has(third)
  const [resource = '', name = '', subresource = '', ...rest] = inNamespace ? parts.slice(2) : parts
  const namespace = inNamespace ? second : first === 'namespaces' ? (second ?? '') : ''
  return { namespace, resource, name, subresource, rest }
}

function verbOf(
  method: string,
  special: 'watch' | 'proxy' | undefined,
  { name }: Pick<RequestInfo, 'name'>,
  query: URLSearchParams | undefined,
): Partial<RequestInfo> & { readonly verb: string } {
  if (special !== undefined) return { verb: special, ...selectorsOf(query) }
  const verb = VERBS.get(method) ?? ''
  if (name !== '' || (verb !== 'get' && verb !== 'delete')) return { verb }
  // Who may delete one of them may not delete them as a collection.
  if (verb === 'delete') return { verb: 'deletecollection', ...selectorsOf(query), name: '' }
  const watch = query?.get('watch') ?? null
  return { verb: watch === null || watch === 'false' || watch === '0' ? 'list' : 'watch', ...selectorsOf(query) }
}

/** `metadata.name=x` makes x the name for authorization, so that a right to one object lets one list and watch it. */
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
