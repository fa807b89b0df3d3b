/** Flushes files and folders, so that a file and its name survive a power cut. */
import { closeSync, fsyncSync, openSync } from 'node:fs'

/** Waits until the contents of a file are on the disk. */
export function flushFile(path: string): void {
  flush(path, 'r+')
}

/** Waits until the names in a folder are on the disk. Windows neither has nor needs this. */
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
