/** An object names each of its owners once: repetitions are dropped from what is sent, with a warning. */
import { type ObjectMeta, semanticEqual } from '#meta/object.ts'

/** `when` tells at what point they were found. */
export function dropRepeatedOwners(metadata: ObjectMeta, warn: (text: string) => void, when = ''): void {
  const { ownerReferences: owners } = metadata
  if (owners === undefined || owners.length < 2) return
  const isFirst = owners.map((owner, at) => owners.findIndex((other) => semanticEqual(other, owner)) === at)
  const repeated = owners.filter((_, at) => isFirst[at] === false)
  if (repeated.length === 0) return
  warn(
    `.metadata.ownerReferences contains duplicate entries${when && ` ${when}`}; API server dedups owner references in ` +
      '1.20+, and may reject ' +
      'such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ' +
      repeated.map(({ uid }) => uid).join(', '),
  )
  metadata.ownerReferences = owners.filter((_, at) => isFirst[at] === true)
}
