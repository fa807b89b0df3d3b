/** Which kinds of a cluster a search reads, and in which order: those that people look for first. */
import type { Kind } from '../api/kinds.ts'
import { groupKinds, qualified } from '../parts/kind-groups.ts'

/** Records of what happened, and copies of other objects. They would hide the objects that people look for. */
const SKIPPED: ReadonlySet<string> = new Set([
  'events',
  'events.events.k8s.io',
  'endpoints',
  'endpointslices.discovery.k8s.io',
  'leases.coordination.k8s.io',
  'componentstatuses',
  'controllerrevisions.apps',
])
const METRICS = /(?:^|\.)metrics\.k8s\.io$/
/** More kinds than clusters have. A hostile cluster could have any number. */
export const MAX_KINDS = 400

export function searchedKinds(kinds: readonly Kind[]): readonly Kind[] {
  return groupKinds(kinds)
    .flatMap((group) => group.kinds)
    .filter((kind) => !SKIPPED.has(qualified(kind)) && !METRICS.test(kind.group))
    .slice(0, MAX_KINDS)
}
