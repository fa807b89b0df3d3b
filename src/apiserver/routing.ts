/** Parses the path and method of an API request, before the body is read. */
import type { Kind } from '#apis/kinds.ts'
import type { RequestInfo } from '#auth/request-info.ts'

/** `no-path`: 404, as for a resource that is not served. `no-method`: 405. */
export type Routing = 'routed' | 'no-path' | 'no-method'

const READS: ReadonlySet<string> = new Set(['get', 'list', 'watch'])
/** Verbs on collections: the name of their request comes from a selector. */
const OF_MANY: ReadonlySet<string> = new Set(['list', 'watch', 'deletecollection'])

/**
 * Cluster-scoped kinds have no paths in a namespace, and namespaced ones no names outside; only reads span namespaces.
 * Upstream serves custom resources by verb alone, so that a POST to the path of one object creates the object in its
 * body.
 */
export function routingOf(method: string, info: RequestInfo, { namespaced, plural }: Kind, isCustom = false): Routing {
  const { verb, name, subresource } = info
  const isOfMany = OF_MANY.has(verb)
  // The path of a namespace looks as if it were inside itself.
  const hasNamespace = info.namespace !== '' && plural !== 'namespaces'
  if (hasNamespace ? !namespaced : namespaced && !isOfMany && name !== '') return 'no-path'
  // HEAD counts as get, and `/api/v1/watch/…` as watch for any method; only connectors accept them.
  if (READS.has(verb)) return method === 'GET' || subresource === 'proxy' ? 'routed' : 'no-method'
  if (namespaced && !hasNamespace) return 'no-method'
  return isCustom || takesName(info) ? 'routed' : 'no-method'
}

/** True if the verb, which is not a read, fits the presence or absence of a name. */
function takesName({ verb, name, subresource }: RequestInfo): boolean {
  return OF_MANY.has(verb) || subresource !== '' || (name !== '') === (verb !== 'create')
}
