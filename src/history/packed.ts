/** Compresses parts of the history. Each has a checksum, because SQLite does not notice a flipped bit. */
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'

/** For changes that are packed again soon. */
export const FAST_LEVEL = 1
/** For all others: higher levels take much longer and save little. */
export const SMALL_LEVEL = 6

export function pack(bytes: Uint8Array, level: number): Buffer {
  const { ZSTD_c_compressionLevel: levelOption, ZSTD_c_checksumFlag: checksum } = constants
  return zstdCompressSync(bytes, { params: { [levelOption]: level, [checksum]: 1 } })
}

/** Throws if the bytes are damaged. */
export function unpack(bytes: Uint8Array): Buffer {
  return zstdDecompressSync(bytes)
}
