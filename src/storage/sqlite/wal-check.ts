/**
 * Finds commits that a damaged write-ahead log would lose. SQLite silently ignores everything after a frame with a
 * wrong checksum, even if complete transactions follow. Format: https://sqlite.org/fileformat2.html#walformat
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

import { StorageError } from '../backend.ts'

const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
const MAGIC = 0x377f0682
/** Frames per read: most of a preallocated log is unused, and skipping it is all reading. */
const FRAMES_PER_READ = 256

interface Sums {
  readonly first: number
  readonly second: number
}

/** The damage, or undefined if opening the store loses nothing that was flushed. */
export function findLostCommits(file: string): StorageError | undefined {
  let handle: number
  try {
    handle = openSync(`${file}-wal`, 'r')
  } catch {
    // No log: everything is in the database itself.
    return undefined
  }
  try {
    return scanLog(handle, `${file}-wal`)
  } finally {
    closeSync(handle)
  }
}

function scanLog(handle: number, name: string): StorageError | undefined {
  const size = fstatSync(handle).size
  const header = Buffer.alloc(HEADER_BYTES)
  if (size < HEADER_BYTES || readSync(handle, header, 0, HEADER_BYTES, 0) < HEADER_BYTES) return undefined
  if (!isHeaderIntact(header)) return isHeaderFlipped(header) ? lostError(name, 0) : undefined
  const salts = header.subarray(16, 24)
  let sums: Sums = { first: header.readUInt32BE(24), second: header.readUInt32BE(28) }
  let brokenAt: number | undefined
  let isLaterCommitSeen = false
  for (const { at, frame } of frames(handle, FRAME_HEADER_BYTES + header.readUInt32BE(8))) {
    const isIntact = frame.subarray(8, 16).equals(salts) && isFrameIntact(frame, sums, isBigEndian(header))
    if (!isIntact) brokenAt ??= at
    else if (isLaterCommitSeen) return lostError(name, brokenAt)
    // A frame that ends a transaction contains the size of the database after it.
    else if (brokenAt !== undefined && frame.readUInt32BE(4) !== 0) isLaterCommitSeen = true
    sums = { first: frame.readUInt32BE(16), second: frame.readUInt32BE(20) }
  }
  return undefined
}

/** Every whole frame and its position; its bytes are valid until the next one. */
function* frames(handle: number, frameBytes: number): Generator<{ readonly at: number; readonly frame: Buffer }> {
  const stretch = Buffer.alloc(FRAMES_PER_READ * frameBytes)
  let from = HEADER_BYTES
  let read: number
  do {
    read = readSync(handle, stretch, 0, stretch.length, from)
    for (let at = 0; at + frameBytes <= read; at += frameBytes) {
      yield { at: from + at, frame: stretch.subarray(at, at + frameBytes) }
    }
    from += read
  } while (read === stretch.length)
}

function isBigEndian(header: Buffer): boolean {
  return (header.readUInt32BE(0) & 1) === 1
}

function isHeaderIntact(header: Buffer): boolean {
  if ((header.readUInt32BE(0) & ~1) >>> 0 !== MAGIC) return false
  const { first, second } = addUp(header.subarray(0, 24), { first: 0, second: 0 }, isBigEndian(header))
  return first === header.readUInt32BE(24) && second === header.readUInt32BE(28)
}

/** A header that one flipped bit would repair was damaged; any other was being written when the machine stopped. */
function isHeaderFlipped(header: Buffer): boolean {
  const copy = Buffer.from(header)
  for (let bit = 0; bit < 8 * HEADER_BYTES; bit++) {
    const byte = bit >> 3
    copy[byte] = (header[byte] as number) ^ (1 << (bit & 7))
    if (isHeaderIntact(copy)) return true
    copy[byte] = header[byte] as number
  }
  return false
}

/** Each frame's checksum continues from that of the previous frame, so a frame can be verified with its neighbour. */
function isFrameIntact(frame: Buffer, before: Sums, isBigEndian: boolean): boolean {
  const head = addUp(frame.subarray(0, 8), before, isBigEndian)
  const { first, second } = addUp(frame.subarray(FRAME_HEADER_BYTES), head, isBigEndian)
  return first === frame.readUInt32BE(16) && second === frame.readUInt32BE(20)
}

function lostError(name: string, at: number | undefined): StorageError {
  return new StorageError(
    'corrupt',
    `The write-ahead log "${name}" is damaged at byte ${at}: commits after it would be lost; restore from a snapshot, or remove the log to accept the loss`,
  )
}

function addUp(bytes: Buffer, from: Sums, isBigEndian: boolean): Sums {
  let { first, second } = from
  for (let at = 0; at < bytes.length; at += 8) {
    const a = isBigEndian ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at)
    const b = isBigEndian ? bytes.readUInt32BE(at + 4) : bytes.readUInt32LE(at + 4)
    first = (first + a + second) >>> 0
    second = (second + b + first) >>> 0
  }
  return { first, second }
}
