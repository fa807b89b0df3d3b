/**
 * One process owns a store. The lock is a write transaction held open on a tiny database beside it: the operating
 * system takes it back when the process dies, however it dies, and the owner's pid can be read from it all the while.
 */
import { DatabaseSync } from 'node:sqlite'

import { StorageError } from '../backend.ts'
import { createPrivately } from './durable-file.ts'
import { numberOf } from './layout.ts'

export interface StoreLock {
  release(): void
}

/** Throws `unavailable`, naming the owner, when another process or another backend of this one has the store open. */
export function lockStore(file: string): StoreLock {
  createPrivately(`${file}.lock`)
  const lock = new DatabaseSync(`${file}.lock`, { timeout: 0, returnArrays: true })
  try {
    lock.exec('PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF')
    lock.exec(`PRAGMA user_version = ${process.pid}`)
    lock.exec('BEGIN IMMEDIATE')
  } catch (cause) {
    const owner = ownerOf(lock)
    lock.close()
    throw new StorageError('unavailable', `"${file}" is in use by ${owner}; stop it, or name another file`, { cause })
  }
  return { release: () => lock.close() }
}

function ownerOf(lock: DatabaseSync): string {
  try {
    return `process ${numberOf(lock, 'PRAGMA user_version')}`
  } catch {
    // The owner is just taking the lock: its pid cannot be read in that instant.
    return 'another process'
  }
}
