/** Answers exec of a fake kubelet with a real shell in a terminal of the kernel (pty) of this machine. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

import type { Exchange } from '#lib/http/exchange.ts'
import type { SpdyStream } from '#lib/spdy/stream.ts'

import { acceptSpdy } from '../connect/stand-in-kubelet.ts'

/** Node cannot make terminals: `script` of util-linux does, and `stty` changes their size. */
const SCRIPT = '/usr/bin/script'
export const whyNoTerminal: string | false = existsSync(SCRIPT) ? false : `there is no ${SCRIPT}: install util-linux`

const SHELL = 'tty; PS1="$ " exec bash --norc --noprofile -i'

interface Size {
  readonly Width: number
  readonly Height: number
}

export async function answerWithShell(exchange: Exchange): Promise<void> {
  const { stream } = acceptSpdy(exchange)
  const [errors, stdin, stdout, resizes] = await Promise.all(['error', 'stdin', 'stdout', 'resize'].map(stream))
  if (errors === undefined || stdin === undefined || stdout === undefined || resizes === undefined) return
  const env = { ...process.env, LANG: 'C.UTF-8', LC_ALL: 'C.UTF-8', TERM: 'xterm' }
  const shell = spawn(SCRIPT, ['-qfec', SHELL, '/dev/null'], { stdio: ['pipe', 'pipe', 'ignore'], env })
  const terminal = Promise.withResolvers<string>()
  shell.stdout.on('data', (piece: Buffer) => {
    const [, name] = /^(\/dev\/pts\/\d+)/.exec(piece.toString('latin1')) ?? []
    if (name !== undefined) terminal.resolve(name)
    stdout.write(piece).catch(() => shell.kill())
  })
  // The shell ends with its connection.
  const whole = Promise.all([
    copyInput(stdin, shell.stdin).finally(() => shell.kill('SIGKILL')),
    terminal.promise.then((name) => resize(resizes, name)),
    reportEnd(shell, errors, stdout),
  ])
  // The browser has closed the connection.
  await whole.catch(() => undefined)
}

async function reportEnd(shell: ChildProcess, errors: SpdyStream, stdout: SpdyStream): Promise<void> {
  const code = await new Promise<number>((resolve) => shell.once('close', (ended) => resolve(ended ?? 0)))
  await errors.write(Buffer.from(JSON.stringify(statusOf(code))))
  for (const one of [errors, stdout]) one.end()
}

async function copyInput(stdin: SpdyStream, input: NodeJS.WritableStream): Promise<void> {
  input.on('error', () => undefined)
  for await (const piece of stdin) input.write(piece)
  input.end()
}

async function resize(resizes: SpdyStream, terminal: string): Promise<void> {
  for await (const piece of resizes) {
    for (const text of String(piece).match(/\{[^}]*\}/g) ?? []) {
      const { Width, Height } = JSON.parse(text) as Size
      spawnSync('stty', ['-F', terminal, 'cols', String(Width), 'rows', String(Height)])
    }
  }
}

function statusOf(code: number): object {
  if (code === 0) return { metadata: {}, status: 'Success' }
  const message = `command terminated with exit code ${code}`
  const causes = [{ reason: 'ExitCode', message: String(code) }]
  return { metadata: {}, status: 'Failure', message, reason: 'NonZeroExitCode', details: { causes } }
}
