/**
 * Runs a program in this process; no other file uses `process`. Signals become one AbortSignal, and the process exits
 * after all output is written.
 */
import { realClock } from '#lib/clock.ts'
import { type Program, type ProgramContext, StopSignal } from '#lib/program.ts'
import { secureRandom } from '#lib/random.ts'

/** The signals that stop a server and their numbers, from upstream's SetupSignalHandler. */
const STOP_SIGNALS = [
  ['SIGINT', 2],
  ['SIGTERM', 15],
] as const

/** The program: `invokedAs` is the path or name of this process. */
export type Main = (invokedAs: string, context: Omit<ProgramContext, 'path'>, signal: AbortSignal) => Promise<number>

/**
 * Runs `main`, then exits with its code. Removes the shim's variables from the environment, so that child processes do
 * not inherit them.
 */
export async function runProcess(main: Main): Promise<never> {
  const { HYPERKUBE_ARGV0: invokedAs = process.argv[1] ?? '', HYPERKUBE_PARENT_FD: parentFd } = process.env
  delete process.env['HYPERKUBE_ARGV0']
  delete process.env['HYPERKUBE_PARENT_FD']
  if (parentFd !== undefined) await dieWithParent(Number(parentFd))
  const stop = stopSignal()
  const code = await main(invokedAs, processContext(), stop).catch(reportDefect)
  await Promise.all([process.stdout, process.stderr].map(flush))
  if (stop.reason instanceof StopSignal && stop.reason.exitCode === code) dieOf(stop.reason.signal)
  return process.exit(code)
}

/** Runs a program that is published as a separate file, under its own name or as hyperkube's. */
export function runAlone(program: Program): Promise<never> {
  return runProcess((invokedAs, { args, ...context }, signal) =>
    programName(invokedAs) === 'hyperkube'
      ? program.run({ ...context, args: args.slice(1), path: ['hyperkube', program.name] }, signal)
      : program.run({ ...context, args, path: [program.name] }, signal),
  )
}

/** The last part of a path of either platform, without Windows extensions. */
export function programName(invokedAs: string): string {
  const base = invokedAs.slice(Math.max(invokedAs.lastIndexOf('/'), invokedAs.lastIndexOf('\\')) + 1)
  return base.replace(/\.(?:exe|cmd)$/i, '')
}

/**
 * Ends with the signal itself, so that the parent sees the cause: a shell ends its loop, systemd reports success.
 * Returns if that fails: the first process of a container ignores its own signals.
 */
function dieOf(signal: NodeJS.Signals): void {
  if (process.platform === 'win32') return
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
}

function processContext(): Omit<ProgramContext, 'path'> {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', endOnBrokenPipe)
  const cwd = process.cwd()
  return {
    args: process.argv.slice(2),
    env: process.env,
    cwd,
    stdin: () => process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    clock: realClock,
    random: secureRandom,
    async readFile(path) {
      const [{ readFile }, { resolve }] = await Promise.all([import('node:fs/promises'), import('node:path')])
      return readFile(resolve(cwd, path), 'utf8')
    },
  }
}

/** A closed pipe (`| head`) ends the process silently with the code of SIGPIPE, like a Go program. */
function endOnBrokenPipe(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
  process.exit(141)
}

/** The first signal aborts; the second one exits at once, like upstream. */
function stopSignal(): AbortSignal {
  const controller = new AbortController()
  for (const [name, number] of STOP_SIGNALS) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(1)
      controller.abort(new StopSignal(name, number))
    })
  }
  return controller.signal
}

/**
 * A Node without exec starts us as its child and keeps one end of a pipe. The pipe closes when the parent ends, even by
 * SIGKILL, and then this program stops as well.
 */
async function dieWithParent(fd: number): Promise<void> {
  const { Socket } = await import('node:net')
  const parent = new Socket({ fd, readable: true, writable: false })
  parent.on('close', () => process.kill(process.pid, 'SIGKILL'))
  parent.on('error', () => undefined)
  parent.resume().unref()
}

function flush(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((done) => {
    stream.write('', () => done())
  })
}

function reportDefect(error: unknown): number {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
  return 1
}
