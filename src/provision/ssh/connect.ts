/**
 * Opens an SSH connection to a machine: the system's `ssh`, with our program at the other end. For the local machine a
 * shell replaces `ssh`.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

import { onAbort } from '#lib/abort.ts'

import type { MachineConnection } from '../apply/connections.ts'
import { MachineLost } from '../machine.ts'
import { remoteMachine } from '../machines/remote.ts'
import { BOOTSTRAP } from './bootstrap.ts'
import { sshConfig, type SshSettings, TARGET } from './config.ts'
import { type HandshakeOptions, startProgram } from './handshake.ts'

export interface SshConnectOptions extends SshSettings, HandshakeOptions {
  /** The name of the machine in messages; unique. */
  readonly name: string
  /** True for the local machine. */
  readonly isHere: boolean
  /** The folder for temporary files of `ssh`. */
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
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
    const { program, isThere } = await startProgram({ input: ssh.stdout, output: ssh.stdin }, options)
    if (!isThere) return { program, close }
    const machine = remoteMachine({ name, input: ssh.stdout, output: ssh.stdin, lastWords: words })
    return { machine, program, close }
  } catch (error) {
    ssh.kill('SIGTERM')
    const output = await words()
    throw new MachineLost(`${name}: ${output === '' ? (error as Error).message : output}`, { cause: error })
  }
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
