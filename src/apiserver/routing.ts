/** Which paths there are and which methods they take: a matter of their shape alone, before anybody looks at a body. */
import type { Kind } from '#apis/kinds.ts'

import type { RequestInfo } from './request-info.ts'

/** `no-path`: 404, as for a resource that is not served. `no-method`: 405. */
export type Routing = 'routed' | 'no-path' | 'no-method'

const READS: ReadonlySet<string> = new Set(['get', 'list', 'watch'])
/** About many objects: the name in their request is what a selector asks for. */
const OF_MANY: ReadonlySet<string> = new Set(['list', 'watch', 'deletecollection'])

/**
 * A kind of the cluster has no place in a namespace, a namespaced one no names outside; only reads span namespaces.
 * Upstream serves custom resources by verb alone, so that a POST to the path of one object creates the object in its body.
 */
export function routingOf(method: string, info: RequestInfo, { namespaced, plural }: Kind, isCustom = false): Routing {
  const { verb, name, subresource } = info
  const isOfMany = OF_MANY.has(verb)
  // A namespace is not inside itself, though its path looks like it.
  const hasNamespace = info.namespace !== '' && plural !== 'namespaces'
  if (hasNamespace ? !namespaced : namespaced && !isOfMany && name !== '') return 'no-path'
  // HEAD counts as a get, and `/api/v1/watch/…` as a watch whatever the method; only what is handed on takes them.
  if (READS.has(verb)) return method === 'GET' || subresource === 'proxy' ? 'routed' : 'no-method'
  if (namespaced && !hasNamespace) return 'no-method'
  return isCustom || takesName(info) ? 'routed' : 'no-method'
}

/** Whether the verb, which is no read, goes with a name or the lack of one. */
function takesName({ verb, name, subresource }: RequestInfo): boolean {
  return OF_MANY.has(verb) || subresource !== '' || (name !== '') === (verb !== 'create')
}
