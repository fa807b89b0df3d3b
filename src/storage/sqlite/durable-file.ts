/** What it takes for a file to be its owner's alone, and for it and its name in a folder to survive a power cut. */
import { chmodSync, closeSync, fsyncSync, openSync } from 'node:fs'

/** Makes the file if need be, readable by its owner only from the first moment. SQLite gives its side files that mode. */
export function createPrivately(path: string): void {
  closeSync(openSync(path, 'a', 0o600))
  chmodSync(path, 0o600)
}

/** Waits until the contents of a file are on the disk. */
export function flushFile(path: string): void {
  flush(path, 'r+')
}

/** Waits until the names in a folder are on the disk. Windows has no such thing, and needs none. */
export function flushFolder(path: string): void {
  if (process.platform !== 'win32') flush(path, 'r')
}

function flush(path: string, flags: string): void {
  const handle = openSync(path, flags)
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
