/**
 * Runs a command line with our kubectl and with upstream's. Upstream's is a separate process; ours runs in this process
 * unless configured otherwise.
 */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { Readable, Writable } from 'node:stream'

import { runKubectl } from '#kubectl/kubectl.ts'
import { realClock } from '#lib/clock.ts'
import { StopSignal } from '#lib/program.ts'
import { secureRandom } from '#lib/random.ts'

import type { Line, Stop } from './scene.ts'

const LONGEST_MS = 120_000
/** The same on every machine; kubectl reports the missing folder. */
const SEARCHED = '/no/such/folder:/usr/sbin:/usr/bin:/sbin:/bin'
const MANIFESTS = join(import.meta.dirname, 'manifests')

export interface Outcome {
  /** The exit code; -1 if the process had to be killed. */
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Where a line runs. */
export interface Workspace {
  readonly namespace: string
  readonly node: string
  /** Its own: home, kubeconfig and working directory. */
  readonly folder: string
  /** The discovery cache, shared by all lines. */
  readonly cache: string
  /** Where an object of every kind is. */
  readonly kinds: string
}

interface Call {
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly stdin: string
  readonly stop?: Stop
}

export type Kubectl = (call: Call) => Promise<Outcome>

/** Variables are replaced, then it runs. `:cat FILE` shows a file that a line before it wrote. */
export async function run(kubectl: Kubectl, line: Line, workspace: Workspace): Promise<Outcome> {
  const fill = (text: string): string =>
    text
      .replaceAll('$NS', workspace.namespace)
      .replaceAll('$NODE', workspace.node)
      .replaceAll('$DIR', workspace.folder)
      .replaceAll('$M', MANIFESTS)
      .replaceAll('$K', workspace.kinds)
  const args = line.args.map(fill)
  const [first, file = ''] = args
  if (first === ':cat') return fileOutcome(inFolder(workspace, file))
  const given = Object.entries(line.env).map(([name, value]) => [name, fill(value)])
  return kubectl({
    args,
    cwd: workspace.folder,
    stdin: await stdinOf(line, (text) => inFolder(workspace, fill(text)), fill),
    env: {
      PATH: SEARCHED,
      HOME: workspace.folder,
      KUBECONFIG: join(workspace.folder, 'kubeconfig'),
      KUBECACHEDIR: workspace.cache,
      TZ: 'UTC',
      EDITOR: 'true',
      ...Object.fromEntries(given),
    },
    ...(line.stop !== undefined && { stop: line.stop }),
  })
}

function inFolder({ folder }: Workspace, file: string): string {
  return isAbsolute(file) ? file : join(folder, file)
}

async function fileOutcome(file: string): Promise<Outcome> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => `no file: ${error.code}`)
  return { code: 0, out: text, err: '' }
}

async function stdinOf(
  { stdin }: Line,
  path: (text: string) => string,
  fill: (text: string) => string,
): Promise<string> {
  if (stdin === undefined) return ''
  return 'text' in stdin ? fill(stdin.text) : readFile(path(stdin.file), 'utf8')
}

/** A program of its own; `words` come before the arguments. */
export function program(file: string, words: readonly string[] = []): Kubectl {
  return ({ args, env, cwd, stdin, stop }) =>
    new Promise((resolve) => {
      const options = { env, cwd, timeout: LONGEST_MS, killSignal: 'SIGKILL', maxBuffer: 2 ** 27 } as const
      const child = execFile(file, [...words, ...args], options, (error, out, err) => {
        stopping?.cancel()
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : signalCode(child.signalCode)
        resolve({ code, out, err })
      })
      const stopping = stop && realClock.after(stop.afterMs, () => void child.kill(stop.signal))
      // It may end without reading.
      child.stdin?.on('error', () => undefined)
      child.stdin?.end(stdin)
    })
}

/** As a shell tells of them. */
function signalCode(signal: NodeJS.Signals | null): number {
  return signal === 'SIGINT' || signal === 'SIGTERM' ? 128 + NUMBERS[signal] : -1
}

const NUMBERS: Readonly<Record<Stop['signal'], number>> = { SIGINT: 2, SIGTERM: 15 }

/** Ours, in this process: a start costs nothing. */
export const withinThisProcess: Kubectl = (call) => withinThisProcessAt(() => realClock.now())(call)

/** The same with another time of day. */
export const withinThisProcessAt: (now: () => number) => Kubectl =
  (now) =>
  async ({ args, env, cwd, stdin, stop }) => {
    const [out, err] = [new Collected(), new Collected()]
    const stopped = new AbortController()
    const { afterMs, signal } = stop ?? { afterMs: LONGEST_MS, signal: 'SIGINT' }
    const interrupt = realClock.after(afterMs, () => stopped.abort(new StopSignal(signal, NUMBERS[signal])))
    const context = {
      path: ['kubectl'],
      args,
      env,
      cwd,
      stdin: () => Readable.from([Buffer.from(stdin)]),
      stdout: out,
      stderr: err,
      clock: { ...realClock, now },
      random: secureRandom,
    }
    const code = await runKubectl(context, stopped.signal)
    interrupt.cancel()
    return { code: stopped.signal.aborted && stop === undefined ? -1 : code, out: out.text(), err: err.text() }
  }

class Collected extends Writable {
  readonly #chunks: Buffer[] = []

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#chunks.push(chunk)
    done()
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString()
  }
}
