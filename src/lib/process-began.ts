/** Tells a process from a stranger that got its number since. */
import { readFile } from 'node:fs/promises'

/**
 * When a process began, in the kernel's ticks; undefined for one that has ended, also when nobody has asked for its end yet. Linux
 * only.
 */
export async function beganAt(pid: number): Promise<string | undefined> {
  if (pid <= 0) return undefined
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // Its name, in parentheses, may hold anything; the state follows, and the beginning is the 22nd field.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields === undefined || fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19]
}
