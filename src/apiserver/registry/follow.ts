/**
 * Follows a collection of the watch cache: first the current entries, then every change in order. The callback sees a
 * change as soon as readers do.
 */
import type { Collection } from '#storage/watch-cache/collection.ts'
import type { Reader } from '#storage/watch-cache/readers.ts'
import type { Keyed } from '#storage/watch-cache/ring.ts'

/** Maintains derived state. Neither method may throw or wait. */
export interface Follower<E> {
  /** `previous` is the replaced entry. */
  set(entry: E, previous: E | undefined): void
  remove(previous: E): void
}

export interface Following {
  /** Resolves when the follower has received the initial entries. */
  readonly ready: Promise<void>
  close(): void
}

const EVERYTHING = { id: 'everything', matches: () => true }

export function follow<E extends Keyed>(collection: Collection<E>, follower: Follower<E>): Following {
  let reader: Reader | undefined
  let isClosed = false
  /** The entries that the follower has received. */
  const known = new Map<string, E>()
  const set = (entry: E): void => {
    const previous = known.get(entry.key)
    known.set(entry.key, entry)
    follower.set(entry, previous)
  }
  const remove = (entry: E): void => {
    known.delete(entry.key)
    follower.remove(entry)
  }
  const start = (): void => {
    if (isClosed) return
    // After a rebuild of the cache, removed entries have no delete event.
    for (const entry of known.values()) if (collection.get(entry.key) === undefined) remove(entry)
    for (const entry of collection.entries()) set(entry)
    // Nothing can change between the last entry and this line, so there is no gap between state and changes.
    reader = collection.watch(EVERYTHING, Math.max(collection.changedAt, collection.floor), {
      change(_type, { entry, previous }) {
        if (entry !== undefined) set(entry)
        else if (previous !== undefined) remove(previous)
        return true
      },
      // Until the cache is complete again the last known state counts.
      expired: () => void collection.ready.then(start),
    })
  }
  const ready = collection.isLoaded ? Promise.resolve(start()) : collection.ready.then(start)
  return {
    ready,
    close() {
      isClosed = true
      reader?.close()
    },
  }
}

/** Combines several followers. */
export function joinFollowings(followings: readonly Following[]): Following {
  return {
    ready: Promise.all(followings.map(({ ready }) => ready)).then(() => undefined),
    close: () => followings.forEach((following) => following.close()),
  }
}
