/** Reads the start times of processes, which distinguish a process from a later one with the same pid. */
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

/**
 * When a process began, in the kernel's ticks; undefined for one that has ended, also when its parent has not waited for it
 * yet. Linux only.
 */
export async function beganAt(pid: number): Promise<string | undefined> {
  if (pid <= 0) return undefined
  return startTime(await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined))
}

/** The same without waiting. */
export function beganAtSync(pid: number): string | undefined {
  if (pid <= 0) return undefined
  try {
    return startTime(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return undefined
  }
}

function startTime(stat: string | undefined): string | undefined {
  // The program's name, in parentheses, may hold anything; the state follows, and the start time is the 22nd field.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields === undefined || fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19]
}
