/**
 * Memory for bytes that are let go of in about the order in which they came: many lie in one piece, which goes with the last
 * of them. Node's own pool is no place for what is kept: one frame would hold what lay beside it by chance.
 */

const PIECE_BYTES = 64 << 10

/** So many bytes, to be written by whoever asked for them: what is in them before is anything. */
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
