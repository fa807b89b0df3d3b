/** Admission of a body that is no stored object: a binding, an eviction, a token request. */
import type { GroupVersionKind } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { createOptionsQuery } from '#meta/options.ts'
import { decodeQuery } from '#meta/query.ts'

import type { Call } from '../call.ts'
import { admit } from '../registry/admitting.ts'
import { writeRequestOf } from './body.ts'
import type { View } from './view.ts'

/**
 * Plugins may change the object; those that only look at it are asked by what is returned, once it is what it will be.
 * Both throw StatusError when one refuses.
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
