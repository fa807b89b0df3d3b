/** Defaults of the version a client speaks, filled in before anything else looks at the object. */
import { apiVersionOf } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'

import type { View } from './view.ts'

export function applyDefaults({ resource, representation, services }: View, object: KubeObject): void {
  const wanted = apiVersionOf(representation.kind)
  const other = resource.otherVersions?.find(({ kind }) => apiVersionOf(kind) === wanted)
  if (other === undefined) resource.applyDefaults?.(object, services)
  else other.applyDefaults?.(object, services)
}
