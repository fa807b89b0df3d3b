/** Counts the open files and reads the limits of a container's processes. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

import type { Figures } from './cgroup-figures.ts'

/** Processes that have ended meanwhile are ignored. */
export function processFigures(pids: readonly number[]): Figures {
  const links = pids.flatMap((pid) => openIn(`/proc/${pid}/fd`))
  return {
    processes: pids.length,
    descriptors: links.length,
    sockets: links.filter((link) => link.startsWith('socket:')).length,
  }
}

function openIn(dir: string): string[] {
  try {
    return readdirSync(dir).map((name) => linkOf(`${dir}/${name}`))
  } catch {
    return []
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

/** Its limit of open files; -1: unlimited. Undefined when it has ended. */
export function openFilesLimit(pid: number): number | undefined {
  try {
    return softLimit(readFileSync(`/proc/${pid}/limits`, 'utf8'))
  } catch {
    return undefined
  }
}

export function softLimit(limits: string): number | undefined {
  const word = /^Max open files\s+(\S+)/m.exec(limits)?.[1]
  if (word === undefined) return undefined
  return word === 'unlimited' ? -1 : Number(word)
}
