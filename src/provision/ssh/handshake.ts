/**
 * Starts our program on a remote machine, and uploads it first if it is missing. Speaks with the script of
 * `bootstrap.ts`, over SSH or a stream of a tunnel.
 */
import { createReadStream } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

import type { Payload } from '../payload.ts'
import { LineReader } from './line-reader.ts'

export interface HandshakeOptions {
  /** The builder's folder on the machine. */
  readonly home: string
  /** Our program for an architecture from `uname -m`. */
  readonly payload: (kind: string) => Promise<Payload>
  /** True if a missing program is uploaded. */
  readonly installs: boolean
  /** Receives the progress of the upload in bytes. */
  readonly progress?: (sent: number, size: number) => void
}

export interface Pipes {
  readonly input: Readable
  readonly output: Writable
}

/** Ends before the program takes over the pipes. Rejects for unexpected output. */
export async function startProgram(
  { input, output }: Pipes,
  { home, payload, installs, progress }: HandshakeOptions,
): Promise<{ readonly program: string; readonly isThere: boolean }> {
  output.on('error', () => undefined)
  const lines = new LineReader(input)
  const kind = /^hello (\S+)$/.exec(await lines.next())?.[1]
  if (kind === undefined)
    throw new Error('The shell of the machine gives an unexpected answer: its login prints something')
  const { file, size, sha256 } = await payload(kind)
  output.write(`${home}\n${sha256}\n${size}\n${installs ? 'install' : 'look'}\n`)
  let line = await lines.next()
  const have = /^have (\d+)$/.exec(line)?.[1]
  if (have !== undefined) {
    await send(output, { file, from: Number(have), size }, progress)
    line = await lines.next()
  }
  lines.release()
  const program = `${home}/programs/${sha256}`
  if (line === 'absent') return { program, isThere: false }
  if (line === 'broken') throw new Error('The program was not uploaded correctly; another attempt uploads it again')
  if (line !== 'here') throw new Error(`The machine answers "${line}"`)
  return { program, isThere: true }
}

async function send(
  output: Writable,
  { file, from, size }: { readonly file: string; readonly from: number; readonly size: number },
  progress: HandshakeOptions['progress'],
): Promise<void> {
  if (from >= size) return
  let sent = from
  const counted = async function* (bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of bytes) {
      sent += chunk.length
      progress?.(sent, size)
      yield chunk
    }
  }
  await pipeline(createReadStream(file, { start: from }), counted, output, { end: false })
}
