/** Translates storage errors to API errors. */
import type { GroupResource } from '#meta/kind.ts'
import { failure, internalError, serverTimeoutError } from '#meta/status-errors.ts'
import { StatusError } from '#meta/status.ts'
import { StorageError } from '#storage/backend.ts'
import type { Collection } from '#storage/watch-cache/collection.ts'

import type { Entry } from './entry.ts'

/** True if the store refused a write, as `storageFailure` reports it, because the value is too large. */
export function isTooLarge(error: unknown): boolean {
  return error instanceof Error && error.cause instanceof StorageError && error.cause.code === 'too-large'
}

export function storageFailure(cause: unknown, resource: GroupResource): Error {
  if (cause instanceof StatusError || !(cause instanceof StorageError)) return cause as Error
  switch (cause.code) {
    case 'timeout':
    case 'unavailable':
    case 'closed':
      return serverTimeoutError(resource, 'write', 1)
    case 'no-space':
      return failure({ code: 507, message: cause.message }, { cause })
    case 'too-large':
      return failure({ code: 500, message: cause.message }, { cause })
    case 'compacted':
    case 'future-revision':
    case 'corrupt':
    case 'lease-not-found':
      return internalError(cause)
    default:
      return internalError(cause)
  }
}

/** Throws if a state lacks an object because its stored value is unreadable: it would look as if it did not exist. */
export function checkReadable(collection: Pick<Collection<Entry>, 'unreadableAt'>, keyOrPrefix: string): void {
  const error = collection.unreadableAt(keyOrPrefix)
  if (error !== undefined) throw internalError(error as Error)
}
