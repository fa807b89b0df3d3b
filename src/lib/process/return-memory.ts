/**
 * Returns memory to the system: memory that libc has freed, and pages of Node's binary that only the start needed. It
 * does nothing with another libc or system.
 */
import { readFileSync } from 'node:fs'

import { attempt } from '../attempt.ts'

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
 * The mappings of this file that equal the disk, from the text of /proc/self/smaps. A changed page, as the loader makes
 * with address tables, cannot be read again: such a mapping is skipped.
 */
export function unchangedMappings(smaps: string, file: string): Mapping[] {
  return smaps.split(/^(?=[\da-f]+-[\da-f]+ )/m).flatMap((text) => {
    const [, start, end, access, path] = /^(\w+)-(\w+) (\S{4}) \S+ \S+ \d+ +(.+)$/m.exec(text) ?? []
    const isUnchanged = /^Anonymous: +0 kB$/m.test(text) && access?.includes('w') === false
    return path === file && isUnchanged ? { start: BigInt(`0x${start}`), end: BigInt(`0x${end}`) } : []
  })
}

/** The memory of this process without mapped files; with them if the system does not distinguish them. */
export function ownBytes(): number {
  const [, kb] = /^RssAnon:\s+(\d+) kB$/m.exec(read('/proc/self/status')) ?? []
  return kb === undefined ? process.memoryUsage.rss() : Number(kb) * 1024
}

/** Nothing where there is no /proc. */
const read = (path: string): string => attempt(() => readFileSync(path, 'latin1')) ?? ''
