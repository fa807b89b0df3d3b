/** GET: returns one object. */
import type { Answer, Call } from '#component/requests/call.ts'
import { getOptionsQuery } from '#meta/options.ts'
import { decodeQuery } from '#meta/query.ts'
import { badRequestError, notFoundError } from '#meta/status-errors.ts'

import type { Entry } from '../registry/entry.ts'
import { checkReadable } from '../registry/errors.ts'
import { answerWithObject } from './answers.ts'
import { freshen, parseListVersion, parseVersion, reach } from './versions.ts'
import { formFor, type View } from './view.ts'

export async function getObject(call: Call, view: View): Promise<Answer> {
  const form = formFor(call, view, 'object')
  refuseExport(call)
  const entry = await readEntry(call, view)
  return answerWithObject(call, view, entry, { form, status: 200 })
}

/** The removed parameter `export`. Upstream still rejects it with a text. */
export function refuseExport({ query }: Call): void {
  if (!query.has('export')) return
  const { export: wanted } = decodeQuery<{ export?: boolean }>({ export: 'bool' }, query)
  if (wanted !== true) return
  throw badRequestError('the export parameter, deprecated since v1.14, is no longer supported')
}

/** The entry of the call, at least as new as its resourceVersion; throws 404 if there is none. */
export async function readEntry(call: Call, { store, services, resource, representation }: View): Promise<Entry> {
  const { namespace, name } = call.info
  const { cache, clock } = services
  // Upstream does not cache kinds with a TTL, and has other texts for their versions.
  const parse = resource.ttlMs === undefined ? parseVersion : parseListVersion
  const version = call.query.size === 0 ? undefined : parse(decodeQuery(getOptionsQuery, call.query).resourceVersion)
  if (version === undefined) await freshen(cache, call)
  else if (version > 0) await reach(cache, clock, version, call.signal)
  if (!store.collection.isLoaded) await store.collection.ready
  const key = store.keyOf(resource.kind.namespaced ? namespace : '', name)
  const entry = store.collection.get(key)
  if (entry === undefined) checkReadable(store.collection, key)
  if (entry === undefined)
    throw notFoundError({ group: representation.kind.group, resource: resource.kind.plural }, name)
  if (representation.converter?.isRemote === true) await representation.converter.prepare([entry])
  return entry
}
