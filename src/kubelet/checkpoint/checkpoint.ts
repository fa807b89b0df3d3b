/**
 * Reads and writes state files of the kubelet in upstream's formats. A write is atomic and flushed; a read verifies the
 * checksum.
 */
import { readFile } from 'node:fs/promises'

import { writeFileAtomically } from '#lib/files/atomic-file.ts'

/** The text of a state in its file. */
export interface CheckpointForm<S> {
  readonly print: (state: S) => string
  /** Undefined if the checksum is not that of the state. Throws for a damaged text. */
  readonly parse: (text: string) => S | undefined
}

/** Undefined when the file does not exist. Rejects when it is damaged. */
export async function readCheckpoint<S>(path: string, { parse }: CheckpointForm<S>): Promise<S | undefined> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    return undefined
  })
  if (text === undefined) return undefined
  const state = parse(text)
  if (state === undefined) throw new Error('checkpoint is corrupted')
  return state
}

/** Undefined when the file is missing or damaged. */
export function readIntactCheckpoint<S>(path: string, form: CheckpointForm<S>): Promise<S | undefined> {
  return readCheckpoint(path, form).catch(() => undefined)
}

export function writeCheckpoint<S>(path: string, { print }: CheckpointForm<S>, state: S): Promise<void> {
  return writeFileAtomically(path, print(state), { mode: 0o600 })
}

/** The state as JSON, without a checksum. */
export function plainForm<S>(): CheckpointForm<S> {
  return { print: (state) => JSON.stringify(state), parse: (text) => JSON.parse(text) as S }
}
