import type { Moment } from '#lib/time/moment.ts'

import { StorageError, type Backend, type Revision } from './backend.ts'

/** The revision of a moment. Fails with `compacted` if the store does not know what was committed then. */
export function revisionOf(backend: Pick<Backend, 'revisionAt'>, moment: Moment): Revision {
  if ('revision' in moment) return moment.revision
  const revision = backend.revisionAt(moment.timeMs)
  if (revision !== undefined) return revision
  const time = new Date(moment.timeMs).toISOString()
  throw new StorageError('compacted', `The history of the cluster does not reach back to ${time}`)
}
