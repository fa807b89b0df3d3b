/**
 * Slabs: shared buffers for byte arrays that are freed in roughly the order of their allocation. A buffer is freed with
 * the last of its arrays.
 */

const PIECE_BYTES = 64 << 10

/** This many uninitialized bytes, to be written by the caller. */
export function createSlab(): (bytes: number) => Buffer {
  let piece = Buffer.alloc(0)
  let used = 0
  return (bytes) => {
    if (bytes > PIECE_BYTES / 4) return Buffer.allocUnsafeSlow(bytes)
    if (used + bytes > piece.length) {
      piece = Buffer.allocUnsafeSlow(PIECE_BYTES)
      used = 0
    }
    return piece.subarray(used, (used += bytes))
  }
}
