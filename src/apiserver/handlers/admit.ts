/** Admission of a body that is no stored object: a binding, an eviction, a token request. */
import type { GroupVersionKind } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'

import type { Call } from '../call.ts'
import type { Attributes } from '../registry/admission.ts'
import type { View } from './view.ts'

/**
 * Plugins may change the object; those that only look at it are asked by what is returned, once it is what it will be.
 * Both throw StatusError when one refuses.
 */
export async function admitBody(
  call: Call,
  { resource, services }: View,
  objectKind: GroupVersionKind,
  object: KubeObject,
): Promise<() => Promise<void>> {
  const dryRun = call.query.getAll('dryRun')
  const attributes: Attributes = {
    operation: 'CREATE',
    kind: resource.kind,
    subresource: call.info.subresource,
    objectKind,
    namespace: call.info.namespace,
    name: call.info.name,
    object,
    oldObject: undefined,
    options: dryRun.length === 0 ? {} : { dryRun },
    dryRun: dryRun.length > 0,
    user: call.user,
    objects: services.objects,
    warn: (text) => call.warn(text),
    annotate: call.audit && ((key, value) => call.audit?.annotate(key, value)),
    signal: call.signal,
  }
  await services.admission.mutate(attributes)
  return () => services.admission.validate(attributes)
}
