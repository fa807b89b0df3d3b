/** `--raw`: requests any path of the server without interpreting it. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Readable } from 'node:stream'

import { goQuote } from '#lib/go/text.ts'

import type { Invocation } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { goFileError } from '../printing.ts'

interface RawFlags {
  readonly raw: string
  readonly filename?: readonly string[]
  readonly recursive?: boolean
  readonly output?: string
}

/** The errors for combinations of `--raw` with other flags and arguments. */
export function rawPathProblem({ raw, filename = [], recursive, output = '' }: RawFlags): KubectlError | undefined {
  if (filename.length > 1) return new KubectlError('--raw can only use a single local file or stdin')
  if (/^https?:\/\//.test(filename[0] ?? '')) return new KubectlError('--raw cannot read from a url')
  if (recursive === true) return new KubectlError('--raw and --recursive are mutually exclusive')
  if (output !== '') return new KubectlError('--raw and --output are mutually exclusive')
  return requestUriProblem(raw)
}

export function requestUriProblem(raw: string): KubectlError | undefined {
  if (raw.startsWith('/') || URL.canParse(raw)) return undefined
  return new KubectlError(`--raw must be a valid URL path: parse ${goQuote(raw)}: invalid URI for request`)
}

/** Sends the bytes of the file, if there is one, and prints the response. */
export async function sendRaw(
  { session, stdout, stdin, cwd }: Pick<Invocation, 'session' | 'stdout' | 'stdin' | 'cwd'>,
  method: string,
  path: string,
  file?: string,
): Promise<void> {
  const { readAll } = await import('./manifests.ts')
  const read = (name: string): Promise<Buffer> =>
    readFile(resolve(cwd, name)).catch((cause: Error) => {
      throw new KubectlError(goFileError(name, cause), { cause })
    })
  const bytes = file === undefined ? undefined : file === '-' ? await readAll(stdin()) : await read(file)
  const [rest, { writerTo }] = await Promise.all([session.rest(), import('../streams/pod-logs.ts')])
  const body = bytes === undefined || bytes.length === 0 ? {} : { body: bytes, contentType: '' }
  const write = writerTo(stdout)
  for await (const piece of rest.pieces({ method, path, accept: '*/*', ...body })) await write(piece)
}

/** The first line of standard input; empty at its end. */
export async function readLine(stream: Readable): Promise<string> {
  // Loaded here because most importers of this file never ask.
  const lines = process.getBuiltinModule('node:readline').createInterface({ input: stream })
  for await (const line of lines) {
    lines.close()
    return line
  }
  return ''
}
