/** Finds the processes of this machine that belong to a private containerd. */
import { readdir, readFile } from 'node:fs/promises'

import { type Clock, sleep } from '#lib/clock.ts'

import type { ContainerdPaths } from './paths.ts'

export interface ProcessEntry {
  readonly pid: number
  readonly parent: number
  readonly args: readonly string[]
}

export async function processes(): Promise<ProcessEntry[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const entries = pids.map(async (pid): Promise<ProcessEntry[]> => {
    try {
      const [line, stat] = await Promise.all([
        readFile(`/proc/${pid}/cmdline`, 'utf8'),
        readFile(`/proc/${pid}/stat`, 'utf8'),
      ])
      // The program name is in parentheses and may contain any character.
      const [state = '', parent = ''] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      if (state === 'Z') return []
      return [{ pid: Number(pid), parent: Number(parent), args: line.split('\0').slice(0, -1) }]
    } catch {
      // It ended in the meantime.
      return []
    }
  })
  return (await Promise.all(entries)).flat()
}

/** The containerd process, recognized by its configuration file. */
export function containerdIn(all: readonly ProcessEntry[], { configFile }: ContainerdPaths): number[] {
  return all.filter(({ args }) => args[1] === '--config' && args[2] === configFile).map(({ pid }) => pid)
}

/** The shims, recognized by their socket, and all their descendants. Parents first. */
export function shimsIn(all: readonly ProcessEntry[], { socket }: ContainerdPaths): number[] {
  const isOurs = ({ args }: ProcessEntry): boolean => args[args.indexOf('-address') + 1] === socket
  const found = all.filter((one) => one.args.includes('-address') && isOurs(one)).map(({ pid }) => pid)
  for (const parent of found) {
    for (const child of all) if (child.parent === parent && !found.includes(child.pid)) found.push(child.pid)
  }
  return found
}

/** Shims without children: just started, or orphaned because containerd was killed while starting them. */
export function idleShimsIn(all: readonly ProcessEntry[], { socket }: ContainerdPaths): number[] {
  const parents = new Set(all.map(({ parent }) => parent))
  const isOurs = ({ args }: ProcessEntry): boolean => args[args.indexOf('-address') + 1] === socket
  return all
    .filter((one) => one.args.includes('-address') && isOurs(one) && !parents.has(one.pid))
    .map(({ pid }) => pid)
}

const POLL_MS = 20

/** Sends SIGTERM, then SIGKILL after `graceMs`. Resolves when all have ended; throws if one does not end. */
export async function endProcesses(pids: readonly number[], clock: Clock, graceMs: number): Promise<void> {
  const limit = clock.elapsed() + graceMs
  let left = pids
  if (graceMs > 0) send(left, 'SIGTERM')
  for (let isKilled = false; ; await sleep(clock, POLL_MS)) {
    const alive = await Promise.all(left.map(isAlive))
    left = left.filter((_, at) => alive[at])
    if (left.length === 0) return
    if (clock.elapsed() >= limit + KILL_MS) throw new Error(`Processes do not end: ${left.join(', ')}`)
    if (isKilled || clock.elapsed() < limit) continue
    send(left, 'SIGKILL')
    isKilled = true
  }
}

/** A process survives SIGKILL longer only if it waits for a disk. */
const KILL_MS = 30_000

function send(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch {
      // It has already ended.
    }
  }
}

/** A zombie is not alive. */
async function isAlive(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return stat !== '' && !stat.slice(stat.lastIndexOf(')')).startsWith(') Z')
}
