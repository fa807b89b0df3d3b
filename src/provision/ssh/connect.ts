/**
 * Opens an SSH connection to a machine: the system's `ssh`, with our program at the other end. For the local machine a
 * shell replaces `ssh`.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

import { onAbort } from '#lib/abort.ts'

import type { MachineConnection } from '../apply/connections.ts'
import { MachineLost } from '../machine.ts'
import { remoteMachine } from '../machines/remote.ts'
import type { Payload } from '../payload.ts'
import { BOOTSTRAP } from './bootstrap.ts'
import { sshConfig, type SshSettings, TARGET } from './config.ts'
import { LineReader } from './line-reader.ts'

export interface SshConnectOptions extends SshSettings {
  /** The name of the machine in messages; unique. */
  readonly name: string
  /** True for the local machine. */
  readonly isHere: boolean
  /** The folder for temporary files of `ssh`. */
  readonly folder: string
  /** The builder's folder on the machine. */
  readonly home: string
  /** Our program for an architecture from `uname -m`. */
  readonly payload: (kind: string) => Promise<Payload>
  /** True if a missing program is uploaded. */
  readonly installs: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  /** Receives the progress of the upload in bytes. */
  readonly progress?: (sent: number, size: number) => void
}

type Ssh = ChildProcessByStdio<Writable, Readable, Readable>

/** Rejects with MachineLost and the output of `ssh`. */
export async function connectBySsh(options: SshConnectOptions, signal: AbortSignal): Promise<MachineConnection> {
  const { name, folder, target, isHere } = options
  const config = join(folder, `${name.replaceAll(/[^\w.-]/g, '_')}.config`)
  await writeFile(config, sshConfig(options), { mode: 0o600 })
  const command = target.user === 'root' ? BOOTSTRAP.asRoot : BOOTSTRAP.bySudo
  const env = { ...options.env, LC_ALL: 'C' }
  const [shell, ...args] = isHere ? (['sh', '-c', command] as const) : (['ssh', '-F', config, TARGET, command] as const)
  const ssh: Ssh = spawn(shell, args, { stdio: ['pipe', 'pipe', 'pipe'], env })
  const words = lastWordsOf(ssh)
  const release = onAbort(signal, () => void ssh.kill('SIGTERM'))
  const close = async (): Promise<void> => {
    release()
    ssh.stdin.end()
    if (ssh.exitCode === null && ssh.signalCode === null) await once(ssh, 'close')
  }
  try {
    const { digest, isThere } = await bootstrap(ssh, options)
    const program = `${options.home}/programs/${digest}`
    if (!isThere) return { program, close }
    const machine = remoteMachine({ name, input: ssh.stdout, output: ssh.stdin, lastWords: words })
    return { machine, program, close }
  } catch (error) {
    ssh.kill('SIGTERM')
    const output = await words()
    throw new MachineLost(`${name}: ${output === '' ? (error as Error).message : output}`, { cause: error })
  }
}

/** The handshake before the program takes over the pipes. Throws for unexpected output. */
async function bootstrap(
  ssh: Ssh,
  { home, payload, installs, progress }: SshConnectOptions,
): Promise<{ digest: string; isThere: boolean }> {
  ssh.stdin.on('error', () => undefined)
  const lines = new LineReader(ssh.stdout)
  const kind = /^hello (\S+)$/.exec(await lines.next())?.[1]
  if (kind === undefined)
    throw new Error('The shell of the machine gives an unexpected answer: its login prints something')
  const { file, size, sha256 } = await payload(kind)
  ssh.stdin.write(`${home}\n${sha256}\n${size}\n${installs ? 'install' : 'look'}\n`)
  let line = await lines.next()
  const have = /^have (\d+)$/.exec(line)?.[1]
  if (have !== undefined) {
    await send(ssh.stdin, { file, from: Number(have), size }, progress)
    line = await lines.next()
  }
  lines.release()
  if (line === 'absent') return { digest: sha256, isThere: false }
  if (line === 'broken') throw new Error('The program was not uploaded correctly; another attempt uploads it again')
  if (line !== 'here') throw new Error(`The machine answers "${line}"`)
  return { digest: sha256, isThere: true }
}

async function send(
  stdin: Writable,
  { file, from, size }: { readonly file: string; readonly from: number; readonly size: number },
  progress: SshConnectOptions['progress'],
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
  await pipeline(createReadStream(file, { start: from }), counted, stdin, { end: false })
}

const WORDS = 4096

/** The last output of `ssh`, after it has ended. */
function lastWordsOf(ssh: Ssh): () => Promise<string> {
  let text = ''
  ssh.stderr.setEncoding('utf8').on('data', (chunk: string) => (text = (text + chunk).slice(-WORDS)))
  const ended = new Promise<void>((resolve) => {
    ssh.once('close', () => resolve())
    ssh.once('error', (error) => {
      text = `ssh cannot be started: ${error.message}`
      resolve()
    })
  })
  return async () => {
    await ended
    return text.trim()
  }
}
