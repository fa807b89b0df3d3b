/**
 * Computes the labels of request metrics, with upstream's names. Only requests for a served resource set resource
 * labels, so that clients cannot create series at will.
 */
import type { RequestInfo } from '#auth/request-info.ts'
import type { Observed } from '#component/requests/request-meter.ts'

export interface Labels {
  readonly verb: string
  readonly dryRun: string
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly subresource: string
  readonly scope: string
  readonly component: string
}

/** The counted paths that are not resources. */
const PATHS: ReadonlyMap<string, Partial<Labels>> = new Map<string, Partial<Labels>>([
  ...['/healthz', '/livez', '/readyz'].map((path) => [path, { subresource: path, component: '' }] as const),
  ...['/api', '/apis'].map((path) => [path, { subresource: path }] as const),
  ...['statusz', 'flagz'].map((page) => [`/${page}`, { resource: page, component: 'kube-apiserver' }] as const),
])

const NOWHERE = { group: '', version: '', resource: '', subresource: '', scope: '', component: 'apiserver' }

/** Undefined for paths that are not counted. */
export function labelsOf(request: Observed): Labels | undefined {
  const { info, query } = request
  const dryRun = dryRunOf(query)
  const scope = scopeOf(info)
  const verb = verbOf(request, scope)
  if (info.isResource) {
    const { group, version, resource, subresource } = info
    return { verb, dryRun, group, version, resource, subresource, scope, component: 'apiserver' }
  }
  const path = PATHS.get(info.path)
  return path && { ...NOWHERE, verb, dryRun, ...path }
}

export function scopeOf({ isResource, verb, name, namespace }: RequestInfo): string {
  if (name !== '' || verb === 'create') return 'resource'
  return namespace !== '' ? 'namespace' : isResource ? 'cluster' : ''
}

const CONNECTS: ReadonlySet<string> = new Set(['attach', 'exec', 'log', 'portforward', 'proxy'])
const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])

/** By HTTP method, refined by its effect. */
function verbOf({ info, method, contentType }: Observed, scope: string): string {
  if (info.isResource && CONNECTS.has(info.subresource)) return 'CONNECT'
  if (info.verb === 'watch') return 'WATCH'
  if (info.verb === 'deletecollection') return 'DELETE'
  if (method === 'GET' || method === 'HEAD') return scope === 'resource' || scope === '' ? 'GET' : 'LIST'
  if (method === 'PATCH' && contentType === 'application/apply-patch+yaml') return 'APPLY'
  return METHODS.has(method) ? method : 'other'
}

function dryRunOf(query: URLSearchParams): string {
  if (query.size === 0) return ''
  const given = query.getAll('dryRun')
  if (given.length === 0) return ''
  return given.every((value) => value === 'All') ? 'All' : 'invalid'
}

const FIELD_VALIDATIONS: ReadonlySet<string> = new Set(['', 'Ignore', 'Warn', 'Strict'])

export function fieldValidationOf(query: URLSearchParams): string {
  if (query.size === 0) return ''
  const given = query.getAll('fieldValidation')
  if (given.length === 0) return ''
  const [only = ''] = given
  return given.length === 1 && FIELD_VALIDATIONS.has(only) ? only : 'invalid'
}

const KNOWN_USERS: ReadonlySet<string> = new Set([
  'admin',
  'client',
  'kube_proxy',
  'kubelet',
  'system:serviceaccount:kube-system:default',
])

/** User names appear only if they are the same in all clusters: metrics must not contain names of people. */
export function userLabel(name: string): string {
  if (KNOWN_USERS.has(name)) return name
  return name.includes('@') ? 'email_id' : 'other'
}
