/**
 * Following a collection of the watch cache: first everything that is there, then every change, in the order and at the
 * moment it becomes visible to readers. What is derived this way is never behind what a GET would answer.
 */
import type { Collection } from '#storage/watch-cache/collection.ts'
import type { Reader } from '#storage/watch-cache/readers.ts'
import type { Keyed } from '#storage/watch-cache/ring.ts'

/** Keeps what is derived from the entries. Neither may throw or wait. */
export interface Follower<E> {
  /** `previous` is what this entry replaces. */
  set(entry: E, previous: E | undefined): void
  remove(previous: E): void
}

export interface Following {
  /** Resolves when the follower has seen everything that was there at first. */
  readonly ready: Promise<void>
  close(): void
}

const EVERYTHING = { id: 'everything', matches: () => true }

export function follow<E extends Keyed>(collection: Collection<E>, follower: Follower<E>): Following {
  let reader: Reader | undefined
  let isClosed = false
  /** What the follower has been told to be there. */
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
    // After the cache was rebuilt, what is no longer there went unseen.
    for (const entry of known.values()) if (collection.get(entry.key) === undefined) remove(entry)
    for (const entry of collection.entries()) set(entry)
    // Nothing can change between the last entry and this line, so the state and its changes meet without a gap.
    reader = collection.watch(EVERYTHING, Math.max(collection.changedAt, collection.floor), {
      change(_type, { entry, previous }) {
        if (entry !== undefined) set(entry)
        else if (previous !== undefined) remove(previous)
        return true
      },
      // Until the cache is whole again the last known state counts.
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

/** Several as one. */
export function joinFollowings(followings: readonly Following[]): Following {
  return {
    ready: Promise.all(followings.map(({ ready }) => ready)).then(() => undefined),
    close: () => followings.forEach((following) => following.close()),
  }
}
