/** Validates the writes of a commit, for all backends. */
import { createSlab } from '#lib/collections/slab.ts'

import { StorageError, type Write } from './backend.ts'

/** The maximum of changes per revision in the sqlite log; etcd's default is 128 per transaction. */
export const MAX_WRITES_PER_COMMIT = 1024
/** etcd's default limit, so that every store can be migrated to any other. */
const MAX_REQUEST_BYTES = 1.5 * 2 ** 20
/** The maximum that upstream's client sends to etcd, however large etcd's own limit is. */
const MAX_MESSAGE_BYTES = 2 << 20

interface WriteLimits {
  readonly requestBytes: number
}

const OWN_LIMITS: WriteLimits = { requestBytes: MAX_REQUEST_BYTES }

/**
 * Throws TypeError for an empty or repeated key, and `too-large`, with upstream's text for clients, for more than a
 * commit can contain.
 */
export function checkWrites(writes: readonly Write[], { requestBytes }: WriteLimits = OWN_LIMITS): void {
  if (writes.length > MAX_WRITES_PER_COMMIT) {
    throw new StorageError('too-large', 'etcdserver: too many operations in txn request')
  }
  let bytes = 0
  for (const { key, value } of writes) {
    if (key === '') throw new TypeError('A key must not be empty')
    bytes += key.length + (value?.length ?? 0)
  }
  if (bytes > MAX_MESSAGE_BYTES) {
    const sizes = `trying to send message larger than max (${bytes} vs. ${MAX_MESSAGE_BYTES})`
    throw new StorageError('too-large', `rpc error: code = ResourceExhausted desc = ${sizes}`)
  }
  if (bytes > requestBytes) throw new StorageError('too-large', 'etcdserver: request is too large')
  if (writes.length > 1 && new Set(writes.map(({ key }) => key)).size < writes.length) {
    throw new TypeError('The writes of one commit must name different keys')
  }
}

/** A copy in a buffer of exactly its size: slices of the shared pool would keep the whole slab alive. */
export function exactCopy(bytes: Uint8Array): Uint8Array {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  copy.set(bytes)
  return copy
}

/** Copies bytes that are freed in roughly the order of arrival. */
export function copyingInTurn(): (bytes: Uint8Array) => Uint8Array {
  const take = createSlab()
  return (bytes) => {
    const copy = take(bytes.length)
    copy.set(bytes)
    return copy
  }
}
