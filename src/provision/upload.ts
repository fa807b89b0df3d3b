/** Sends a file to a machine in parts: what has arrived is not sent again. */
import { open } from 'node:fs/promises'

import type { DesiredUpload } from './desired.ts'
import type { Machine } from './machine.ts'

const PART_BYTES = 4 << 20

export async function sendFile(
  machine: Pick<Machine, 'uploadAt' | 'uploadPart' | 'uploadEnd'>,
  { source, path, sha256, mode }: DesiredUpload,
  signal: AbortSignal,
): Promise<void> {
  const upload = { path, sha256 }
  const { at: from, isDone } = await machine.uploadAt(upload)
  if (isDone) return
  await using file = await open(source, 'r')
  const { size } = await file.stat()
  // What is longer than it should be is something else.
  for (let at = from > size ? 0 : from; at < size || at === 0; at += PART_BYTES) {
    signal.throwIfAborted()
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(PART_BYTES, size - at)), 0, undefined, at)
    await machine.uploadPart({ ...upload, at, content: buffer.subarray(0, bytesRead) })
    if (size === 0) break
  }
  await machine.uploadEnd({ ...upload, mode })
}
