/**
 * Memory that goes back to the system: what libc has freed and keeps, and the pages of Node's own program that nothing has
 * needed since the start. Does nothing with another libc, another system, or a Node that cannot call it.
 */
import { readFileSync } from 'node:fs'

import { attempt } from './attempt.ts'

/** To be called when there is nothing to do: it takes some milliseconds. Never throws, as nothing depends on it. */
export function memoryReturner(): () => void {
  const libc = attempt(() => {
    const { dlopen } = process.getBuiltinModule('node:ffi')
    return dlopen('libc.so.6', {
      malloc_trim: { return: 'i32', arguments: ['u64'] },
      madvise: { return: 'i32', arguments: ['u64', 'u64', 'i32'] },
    }).functions
  })
  if (libc === undefined) return () => undefined
  return () =>
    attempt(() => {
      // After a burst in which much was compiled this is more than the heap itself, in the arenas of the engine's threads.
      libc.malloc_trim(0n)
      for (const { start, end } of mappings()) libc.madvise(start, end - start, MADV_DONTNEED)
    })
}

/** Pages stay with the kernel until it needs the room, and are mapped again, sixteen at a time, when the program comes to them. */
const MADV_DONTNEED = 4

interface Mapping {
  readonly start: bigint
  readonly end: bigint
}

const mappings = (): Mapping[] => unchangedMappings(read('/proc/self/smaps'), process.execPath)

/**
 * Where this file is in memory exactly as it is on the disk, from the text of /proc/self/smaps. A page that was changed, as
 * the loader does with tables of addresses, has no other place to come from: such a mapping is left alone.
 */
export function unchangedMappings(smaps: string, file: string): Mapping[] {
  return smaps.split(/^(?=[\da-f]+-[\da-f]+ )/m).flatMap((text) => {
    const [, start, end, access, path] = /^(\w+)-(\w+) (\S{4}) \S+ \S+ \d+ +(.+)$/m.exec(text) ?? []
    const isUnchanged = /^Anonymous: +0 kB$/m.test(text) && access?.includes('w') === false
    return path === file && isUnchanged ? { start: BigInt(`0x${start}`), end: BigInt(`0x${end}`) } : []
  })
}

/** What this process holds itself, besides files that are mapped; with them where the system does not tell them apart. */
export function ownBytes(): number {
  const [, kb] = /^RssAnon:\s+(\d+) kB$/m.exec(read('/proc/self/status')) ?? []
  return kb === undefined ? process.memoryUsage.rss() : Number(kb) * 1024
}

/** Nothing where there is no /proc. */
const read = (path: string): string => attempt(() => readFileSync(path, 'latin1')) ?? ''
