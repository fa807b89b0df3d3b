/** Drops repeated owner references of a client's object, with upstream's warning. */
import type { ObjectMeta, OwnerReference } from '#meta/object.ts'

/** `when` is the point in time for the warning. */
export function dropRepeatedOwners(metadata: ObjectMeta, warn: (text: string) => void, when = ''): void {
  const { ownerReferences: owners } = metadata
  if (owners === undefined || owners.length < 2) return
  const keys = new Set<string>()
  const unique: OwnerReference[] = []
  const repeatedUids: string[] = []
  for (const owner of owners) {
    const key = identityOf(owner)
    if (keys.has(key)) {
      repeatedUids.push(owner.uid)
      continue
    }
    keys.add(key)
    unique.push(owner)
  }
  if (repeatedUids.length === 0) return
  warn(
    `.metadata.ownerReferences contains duplicate entries${when && ` ${when}`}; API server dedups owner references in ` +
      '1.20+, and may reject ' +
      'such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ' +
      repeatedUids.join(', '),
  )
  metadata.ownerReferences = unique
}

/** Two references are equal if all fields are. */
function identityOf({ apiVersion, kind, name, uid, controller, blockOwnerDeletion }: OwnerReference): string {
  return JSON.stringify([apiVersion, kind, name, uid, controller ?? null, blockOwnerDeletion ?? null])
}
