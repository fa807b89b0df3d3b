/** What every backend of our own asks of a commit before it looks at the store. */
import { StorageError, type Write } from './backend.ts'

/** One revision has room for so many changes in the sqlite log; etcd's default is 128 per transaction. */
export const MAX_WRITES_PER_COMMIT = 1024
/** Several times the largest object the API accepts (3 MiB); bounds how long one commit can hold the writer. */
const MAX_COMMIT_BYTES = 16 << 20

/** Throws TypeError for an empty or repeated key and `too-large` for more than a commit can hold. */
export function checkWrites(writes: readonly Write[]): void {
  if (writes.length > MAX_WRITES_PER_COMMIT) {
    throw new StorageError('too-large', `A commit can hold ${MAX_WRITES_PER_COMMIT} writes, not ${writes.length}`)
  }
  let bytes = 0
  for (const { key, value } of writes) {
    if (key === '') throw new TypeError('A key must not be empty')
    bytes += key.length + (value?.length ?? 0)
  }
  if (bytes > MAX_COMMIT_BYTES) {
    throw new StorageError('too-large', `A commit can hold ${MAX_COMMIT_BYTES} bytes, not ${bytes}`)
  }
  if (writes.length > 1 && new Set(writes.map(({ key }) => key)).size < writes.length) {
    throw new TypeError('The writes of one commit must name different keys')
  }
}

/** A copy in a buffer of exactly its size: slices of the shared pool would keep the whole slab alive. */
export function exactCopy(bytes: Uint8Array): Uint8Array {
  const copy = new Uint8Array(new ArrayBuffer(bytes.length))
  copy.set(bytes)
  return copy
}

const SLAB_BYTES = 64 << 10

/** Copies bytes that are let go of in about the order in which they came: many lie in one piece of memory then. */
export function copyingInTurn(): (bytes: Uint8Array) => Uint8Array {
  let slab = new Uint8Array(0)
  let used = 0
  return (bytes) => {
    if (bytes.length > SLAB_BYTES / 4) return exactCopy(bytes)
    if (used + bytes.length > slab.length) {
      slab = new Uint8Array(SLAB_BYTES)
      used = 0
    }
    const copy = slab.subarray(used, (used += bytes.length))
    copy.set(bytes)
    return copy
  }
}
