/** Times of commits as bytes: the differences of revisions and of milliseconds. */
import type { CommitTime } from '#storage/commit-times.ts'

import { putInteger, takeInteger } from './change-bytes.ts'

export function encodeTimes(times: readonly CommitTime[]): Buffer {
  const bytes = Buffer.allocUnsafe(times.length * 16)
  let at = 0
  let [lastRevision, lastMs] = [0, 0]
  for (const [revision, ms] of times) {
    at = putInteger(bytes, at, revision - lastRevision)
    at = putInteger(bytes, at, ms - lastMs)
    lastRevision = revision
    lastMs = ms
  }
  return bytes.subarray(0, at)
}

export function decodeTimes(bytes: Buffer): CommitTime[] {
  const times: CommitTime[] = []
  const place = { at: 0 }
  let [revision, ms] = [0, 0]
  while (place.at < bytes.length) {
    revision += takeInteger(bytes, place)
    ms += takeInteger(bytes, place)
    times.push([revision, ms])
  }
  return times
}
