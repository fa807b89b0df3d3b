/** Uploads a file to a machine in parts, from here or from another machine. An interrupted upload resumes. */
import { open } from 'node:fs/promises'

import type { DesiredUpload } from '../desired.ts'
import { type Machine, MachineError } from '../machine.ts'

const PART_BYTES = 4 << 20

type Receiver = Pick<Machine, 'uploadAt' | 'uploadPart' | 'uploadEnd'>

/** Copies a file between machines, with the same path. */
export async function copyFile(
  from: Pick<Machine, 'read'>,
  to: Receiver,
  { path, sha256, mode }: Omit<DesiredUpload, 'source'>,
  signal: AbortSignal,
): Promise<void> {
  const upload = { path, sha256 }
  const { at: begun, isDone } = await to.uploadAt(upload)
  if (isDone) return
  for (let at = begun; ; at += PART_BYTES) {
    signal.throwIfAborted()
    const { content } = await from.read({ path, part: { at, length: PART_BYTES } })
    if (content === undefined) throw new MachineError(`${path} no longer exists`)
    if (content.length > 0 || at === 0) await to.uploadPart({ ...upload, at, content })
    if (content.length < PART_BYTES) break
  }
  await to.uploadEnd({ ...upload, mode })
}

export async function sendFile(
  machine: Receiver,
  { source, path, sha256, mode }: DesiredUpload,
  signal: AbortSignal,
): Promise<void> {
  const upload = { path, sha256 }
  const { at: from, isDone } = await machine.uploadAt(upload)
  if (isDone) return
  await using file = await open(source, 'r')
  const { size } = await file.stat()
  // A longer file is a different one.
  for (let at = from > size ? 0 : from; at < size || at === 0; at += PART_BYTES) {
    signal.throwIfAborted()
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(PART_BYTES, size - at)), 0, undefined, at)
    await machine.uploadPart({ ...upload, at, content: buffer.subarray(0, bytesRead) })
    if (size === 0) break
  }
  await machine.uploadEnd({ ...upload, mode })
}
