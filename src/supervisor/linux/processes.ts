/**
 * Starts and finds the processes of a worker node on Linux. A file records each with its pid and start time. So a
 * restarted supervisor finds them, and ignores another process that has reused a pid.
 */
import { execFile, spawn } from 'node:child_process'
import { mkdir, open, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

import { type Clock, sleep } from '#lib/clock.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { beganAt } from '#lib/process/start-time.ts'

import type { HostProcesses, OutputOptions } from '../host.ts'
import type { Layout } from '../layout.ts'
import type { ProcessName } from '../process-names.ts'

export interface LinuxProcessesOptions {
  readonly clock: Clock
  readonly layout: Layout
  /** The folders of the records and of process output. */
  readonly stateFolder: string
  readonly logFolder: string
  /** Called when a process has ended. */
  readonly ended: (name: ProcessName) => void
  readonly logs: 'files' | 'journal'
}

interface ProcessRecord {
  readonly pid: number
  /** The start time in kernel ticks. */
  readonly began: string
}

/** The wait after each signal. */
const GRACE_MS = 10_000
const LOOK_MS = 50

export function linuxProcesses(options: LinuxProcessesOptions): HostProcesses {
  const { clock, layout, stateFolder, logFolder, ended, logs } = options
  const fileOf = (name: ProcessName): string => join(stateFolder, `${name}.json`)
  const remembered = async (name: ProcessName): Promise<ProcessRecord | undefined> => {
    const text = await readFile(fileOf(name), 'utf8').catch(() => undefined)
    const known = text === undefined ? undefined : (JSON.parse(text) as ProcessRecord)
    return known !== undefined && (await beganAt(known.pid)) === known.began ? known : undefined
  }
  return {
    async find(name) {
      const known = await remembered(name)
      return known === undefined ? [] : [known.pid]
    },
    async launch({ name, args, env, errorsTo }) {
      const path = errorsTo ?? join(logFolder, `${name}.log`)
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      await mkdir(stateFolder, { recursive: true, mode: 0o700 })
      const log = await open(path, 'a', 0o600)
      try {
        const stdio: ['ignore', number, number] = ['ignore', log.fd, log.fd]
        const isInJournal = logs === 'journal' && errorsTo === undefined
        const [program, ...rest] = commandOf(name, [layout.program(name), ...args], isInJournal)
        // The process outlives the supervisor; the next one adopts it.
        const child = spawn(program, rest, { detached: true, stdio, env: { ...process.env, ...env } })
        child.on('error', () => ended(name))
        child.on('exit', () => ended(name))
        child.unref()
        const pid = child.pid ?? 0
        const text = JSON.stringify({ pid, began: await beganAt(pid) })
        await writeFileAtomically(fileOf(name), text, { mode: 0o600 })
        return pid
      } finally {
        await log.close()
      }
    },
    isAlive: async (pid) => (await beganAt(pid)) !== undefined,
    async kill(name) {
      const known = await remembered(name)
      if (known !== undefined) await endProcess(clock, name, known)
    },
    output: outputOf,
  }
}

/** Sends SIGTERM, then SIGKILL; returns when the process has ended. */
async function endProcess(clock: Clock, name: ProcessName, { pid, began }: ProcessRecord): Promise<void> {
  const hasGone = async (): Promise<boolean> => (await beganAt(pid)) !== began
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (await hasGone()) return
    signalTo(pid, signal)
    for (let waited = 0; waited < GRACE_MS && !(await hasGone()); waited += LOOK_MS) await sleep(clock, LOOK_MS)
  }
  if (!(await hasGone())) throw new Error(`${name}, process ${pid}, does not end`)
}

/** systemd-cat executes the program after it has connected to the journal. */
function commandOf(name: ProcessName, command: readonly [string, ...string[]], isInJournal: boolean): typeof command {
  return isInJournal ? ['systemd-cat', `--identifier=${name}`, ...command] : command
}

async function outputOf(program: string, args: readonly string[], options: OutputOptions = {}): Promise<string> {
  const running = promisify(execFile)(program, [...args], { env: { ...process.env, ...options.env } })
  // The process may end without reading its input.
  running.child.stdin?.on('error', () => undefined).end(options.input ?? '')
  return (await running).stdout
}

function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // The process has just ended.
  }
}
