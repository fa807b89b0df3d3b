/** The local terminal: raw mode during a session, and size changes. */
import { once } from 'node:events'
import type { Readable } from 'node:stream'

import type { TerminalSize } from '#client/streams/remote-command.ts'
import type { ProgramContext } from '#lib/program.ts'

interface TerminalInput extends Readable {
  readonly isTTY?: boolean
  setRawMode?(isRaw: boolean): unknown
}

export function isTerminal(stdin: Readable): boolean {
  return (stdin as TerminalInput).isTTY === true
}

/** Passes all keys to the reader, including Ctrl-C, until `task` ends. */
export async function inRawMode<T>(stdin: Readable, task: () => Promise<T>): Promise<T> {
  const input = stdin as TerminalInput
  input.setRawMode?.(true)
  try {
    return await task()
  } finally {
    input.setRawMode?.(false)
    input.pause()
  }
}

type TerminalOutput = ProgramContext['stdout'] & { readonly rows?: number }

/** Undefined if standard output is no terminal. */
export function sizeOf(stdout: ProgramContext['stdout']): TerminalSize | undefined {
  const { columns, rows } = stdout as TerminalOutput
  return columns === undefined || rows === undefined ? undefined : { width: columns, height: rows }
}

/** Yields the given sizes first, then each new size of the terminal. */
export async function* terminalSizes(
  stdout: ProgramContext['stdout'],
  first: readonly TerminalSize[],
  signal: AbortSignal,
): AsyncGenerator<TerminalSize> {
  yield* first
  while (!signal.aborted) {
    await once(stdout, 'resize', { signal })
    const size = sizeOf(stdout)
    if (size !== undefined) yield size
  }
}

/** Parses `ctrl-p,ctrl-q` into bytes. Throws for invalid keys. */
export function detachKeys(text: string): Buffer {
  const bytes = text.split(',').flatMap((key) => {
    if (key.length === 1) return [...Buffer.from(key)]
    const at = CONTROLS.indexOf(key.replace(/^ctrl-/, ''))
    if (!key.startsWith('ctrl-') || at < 0) throw new Error(`unknown character: '${key}'`)
    return [at]
  })
  return Buffer.from(bytes)
}

/** By code: ctrl-@ is 0, ctrl-a is 1. */
const CONTROLS = '@abcdefghijklmnopqrstuvwxyz[\\]^_'

/** Passes input through until the detach sequence. An incomplete sequence is passed on later. */
export async function* untilKeys(
  typed: AsyncIterable<Buffer>,
  keys: Buffer,
  onDetach: () => void,
): AsyncGenerator<Buffer> {
  let matched = 0
  for await (const data of typed) {
    const read = readKeys(data, keys, matched)
    matched = read.matched
    if (read.passed.length > 0) yield Buffer.from(read.passed)
    if (matched === keys.length) return onDetach()
  }
}

interface ReadKeys {
  readonly passed: readonly number[]
  /** The number of matched keys in a row. */
  readonly matched: number
}

/** Input after the complete sequence is dropped. */
function readKeys(data: Buffer, keys: Buffer, before: number): ReadKeys {
  const passed: number[] = []
  let matched = before
  for (const byte of data) {
    if (byte !== keys[matched]) {
      passed.push(...keys.subarray(0, matched))
      matched = 0
    }
    if (byte === keys[matched]) matched++
    else passed.push(byte)
    if (matched === keys.length) break
  }
  return { passed, matched }
}
