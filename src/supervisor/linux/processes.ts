/**
 * The three processes on Linux. Each is remembered by its number and the moment it began, in a file, so that a supervisor that
 * was started again finds those of the one before and no stranger that got the number since.
 */
import { execFile, spawn } from 'node:child_process'
import { mkdir, open, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

import { writeFileAtomically } from '#lib/atomic-file.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { beganAt } from '#lib/process-began.ts'

import type { HostProcesses, OutputOptions } from '../host.ts'
import type { Layout } from '../layout.ts'
import type { ProcessName } from '../process-names.ts'

export interface LinuxProcessesOptions {
  readonly clock: Clock
  readonly layout: Layout
  /** Where they are remembered, and where what they say goes. */
  readonly stateFolder: string
  readonly logFolder: string
  /** Told when one has ended. */
  readonly ended: (name: ProcessName) => void
  readonly logs: 'files' | 'journal'
}

interface Remembered {
  readonly pid: number
  /** In ticks of the kernel since it began. */
  readonly began: string
}

/** After each signal. */
const GRACE_MS = 10_000
const LOOK_MS = 50

export function linuxProcesses(options: LinuxProcessesOptions): HostProcesses {
  const { clock, layout, stateFolder, logFolder, ended, logs } = options
  const fileOf = (name: ProcessName): string => join(stateFolder, `${name}.json`)
  const remembered = async (name: ProcessName): Promise<Remembered | undefined> => {
    const text = await readFile(fileOf(name), 'utf8').catch(() => undefined)
    const known = text === undefined ? undefined : (JSON.parse(text) as Remembered)
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
        // It outlives this process: who is started again takes it over.
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

/** Asks first, then by force; returns when it has gone. */
async function endProcess(clock: Clock, name: ProcessName, { pid, began }: Remembered): Promise<void> {
  const hasGone = async (): Promise<boolean> => (await beganAt(pid)) !== began
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (await hasGone()) return
    signalTo(pid, signal)
    for (let waited = 0; waited < GRACE_MS && !(await hasGone()); waited += LOOK_MS) await sleep(clock, LOOK_MS)
  }
  if (!(await hasGone())) throw new Error(`${name}, process ${pid}, does not end`)
}

/** systemd-cat becomes the program once it has told the journal who that is. */
function commandOf(name: ProcessName, command: readonly [string, ...string[]], isInJournal: boolean): typeof command {
  return isInJournal ? ['systemd-cat', `--identifier=${name}`, ...command] : command
}

async function outputOf(program: string, args: readonly string[], options: OutputOptions = {}): Promise<string> {
  const running = promisify(execFile)(program, [...args], { env: { ...process.env, ...options.env } })
  // It may end without having read.
  running.child.stdin?.on('error', () => undefined).end(options.input ?? '')
  return (await running).stdout
}

function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has just ended.
  }
}
