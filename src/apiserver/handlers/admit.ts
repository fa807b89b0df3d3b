/** Runs admission for a request body that is not a stored object: a binding, an eviction, a token request. */
import type { Call } from '#component/requests/call.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { createOptionsQuery } from '#meta/options.ts'
import { decodeQuery } from '#meta/query.ts'

import { admit } from '../registry/admitting.ts'
import { writeRequestOf } from './body.ts'
import type { View } from './view.ts'

/**
 * Runs mutating plugins, which may change the object, and returns the function that runs validating plugins. Both throw
 * StatusError if a plugin refuses.
 */
export function admitBody(
  call: Call,
  { resource, services }: View,
  objectKind: GroupVersionKind,
  object: KubeObject,
): Promise<() => Promise<void>> {
  const { kind } = resource
  const options = decodeQuery(createOptionsQuery, call.query)
  const request = writeRequestOf(call, { ...objectKind, namespaced: kind.namespaced }, options)
  return admit(services, request, { operation: 'CREATE', kind, name: call.info.name, object, oldObject: undefined })
}
