/**
 * A lock that belongs to a process. The operating system frees it when the process dies, and any other process can read
 * its owner.
 *
 * Node has no flock: the lock is an open write transaction on a small SQLite database. The owner is in the header of
 * that database, which is one page, so that a process killed during a write leaves no torn record.
 */
import { accessSync, chmodSync, closeSync, constants, openSync, rmSync, statSync, truncateSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'

import { beganAtSync } from './start-time.ts'

export interface LockOwner {
  /** 0 where the owner cannot be read: it takes the lock at this instant. */
  readonly pid: number
  /** When that process began, in ticks modulo 2^30; 0 where the system does not say. */
  readonly began: number
  readonly use: LockUse
}

/** `service`: for as long as the process serves. `upkeep`: for a short work on files that no service may use meanwhile. */
export type LockUse = 'service' | 'upkeep'

/** Both may be called again, and do nothing then. */
export interface ProcessLock {
  release(): void
  /** Releases the lock and deletes its file. No two processes can own the old file and a new one at the same time. */
  discard(): void
}

export type LockAttempt = { readonly lock: ProcessLock } | { readonly owner: LockOwner }

/** Longer than a probe or a second attempt keeps the database; shorter than a person notices. */
const BUSY_MS = 100
const TRIES = 20

/** Creates the file if necessary. A lock of the same process counts as taken as well. Throws when the file cannot be used. */
export function takeProcessLock(file: string, use: LockUse = 'service'): LockAttempt {
  for (let tries = 0; tries < TRIES; tries++) {
    createPrivately(file)
    const attempt = attemptLock(file, use)
    if (attempt !== 'changed') return attempt
  }
  return { owner: NO_OWNER }
}

/** Undefined where no process owns the lock. Creates nothing. Throws when the file cannot be opened. */
export function lockOwner(file: string): LockOwner | undefined {
  for (let tries = 0; tries < TRIES && isThere(file); tries++) {
    const db = open(file)
    if (db === undefined) continue
    try {
      db.exec('BEGIN IMMEDIATE; ROLLBACK')
      return undefined
    } catch (error) {
      if (isDamaged(error)) return undefined
      if (!isBusy(error)) throw error
      return readOwner(db)
    } finally {
      db.close()
    }
  }
  return undefined
}

/**
 * True while any process has this SQLite database in WAL mode open. A lock file can be deleted under its owner, as
 * clean-up programs do; the database itself still shows its users.
 */
export function isDatabaseOpen(file: string): boolean {
  if (!isThere(file)) return false
  using db = new DatabaseSync(addressOf(file), { timeout: BUSY_MS })
  try {
    // Every connection has a shared lock on its open file; this one must be alone.
    db.exec('PRAGMA locking_mode = EXCLUSIVE; SELECT 1 FROM sqlite_schema')
    return false
  } catch (error) {
    if (isBusy(error)) return true
    if (isDamaged(error)) return false
    throw error
  }
}

/** The running process as an owner. */
export function currentOwner(use: LockUse): LockOwner {
  return { pid: process.pid, began: moduloTicks(beganAtSync(process.pid) ?? '0'), use }
}

/** Whether the owner still runs and is visible from here: a process in another container has another number here. */
export function isOwnerVisible({ pid, began }: LockOwner): boolean {
  if (pid <= 0) return false
  if (process.platform === 'linux') {
    const ticks = beganAtSync(pid)
    return ticks !== undefined && (began === 0 || began === moduloTicks(ticks))
  }
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

/**
 * Makes the file if need be, readable by its owner only from the first moment. Never opens one that exists: closing it
 * would release every POSIX lock that this process has on it.
 */
export function createPrivately(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
    restrict(path)
  }
}

function restrict(path: string): void {
  try {
    chmodSync(path, 0o600)
  } catch (error) {
    // Another process has deleted it since.
    if (codeOf(error) !== 'ENOENT') throw error
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code
}

function isThere(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false }) !== undefined
}

const NO_OWNER: LockOwner = { pid: 0, began: 0, use: 'service' }

function attemptLock(file: string, use: LockUse): LockAttempt | 'changed' {
  const db = open(file)
  if (db === undefined) return 'changed'
  const mine = currentOwner(use)
  try {
    writeOwner(db, mine)
    db.exec('BEGIN IMMEDIATE')
    // Another process may have written itself down between the two transactions. It cannot do so from here on. Or it has
    // discarded the file that is open here, and a lock on that has no effect: so the file is opened again.
    if (isSame(ownerIn(file), mine)) return { lock: lockOn(file, db) }
    db.close()
    return 'changed'
  } catch (error) {
    const owner = isBusy(error) ? readOwner(db) : undefined
    db.close()
    if (owner !== undefined) return { owner }
    if (!isDamaged(error)) throw error
    // A power cut can leave a page of zeros. Truncating keeps the file, and with it an existing lock.
    truncateSync(file)
    return 'changed'
  }
}

function isSame(one: LockOwner, other: LockOwner): boolean {
  return one.pid === other.pid && one.began === other.began && one.use === other.use
}

function ownerIn(file: string): LockOwner {
  const db = open(file)
  try {
    return db === undefined ? NO_OWNER : readOwner(db)
  } finally {
    db?.close()
  }
}

function lockOn(file: string, db: DatabaseSync): ProcessLock {
  const release = (): void => {
    if (db.isOpen) db.close()
  }
  return {
    release,
    discard: () => {
      // Windows deletes no file that is open.
      if (process.platform === 'win32') release()
      rmSync(file, { force: true })
      release()
    },
  }
}

/** Undefined where another process deletes the file meanwhile. */
function open(file: string): DatabaseSync | undefined {
  let db: DatabaseSync | undefined
  try {
    db = new DatabaseSync(addressOf(file), { timeout: BUSY_MS, returnArrays: true })
    db.exec('PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF')
    return db
  } catch (error) {
    // The next statement meets the same and is the one that handles it.
    if (db !== undefined && (isDamaged(error) || isBusy(error))) return db
    db?.close()
    if (sqliteCodeOf(error) !== SQLITE_CANTOPEN) throw error
    // Says why, unless the file has gone meanwhile or is there again.
    if (isThere(file)) explainAccess(file)
    return undefined
  }
}

/** SQLite creates no file: it would be readable by others. */
function addressOf(file: string): URL {
  const address = pathToFileURL(file)
  address.searchParams.set('mode', 'rw')
  return address
}

function explainAccess(file: string): void {
  try {
    accessSync(file, constants.R_OK | constants.W_OK)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}

function writeOwner(db: DatabaseSync, { pid, began, use }: LockOwner): void {
  db.exec('BEGIN IMMEDIATE')
  db.exec(`PRAGMA user_version = ${pid}; PRAGMA application_id = ${2 * began + (use === 'upkeep' ? 1 : 0)}`)
  db.exec('COMMIT')
}

function readOwner(db: DatabaseSync): LockOwner {
  try {
    const [pid, mark] = db
      .prepare('SELECT user_version, application_id FROM pragma_user_version, pragma_application_id')
      .get() as unknown as [number, number]
    return { pid, began: Math.floor(mark / 2), use: mark % 2 === 1 ? 'upkeep' : 'service' }
  } catch (error) {
    if (isBusy(error) || isDamaged(error)) return NO_OWNER
    throw error
  }
}

function moduloTicks(ticks: string): number {
  return Number(ticks) % 2 ** 30
}

/** https://sqlite.org/rescode.html */
const SQLITE_BUSY = 5
const SQLITE_CORRUPT = 11
const SQLITE_CANTOPEN = 14
const SQLITE_NOTADB = 26

function isBusy(error: unknown): boolean {
  return sqliteCodeOf(error) === SQLITE_BUSY
}

function isDamaged(error: unknown): boolean {
  return [SQLITE_CORRUPT, SQLITE_NOTADB].includes(sqliteCodeOf(error))
}

function sqliteCodeOf(error: unknown): number {
  return error instanceof Error && 'errcode' in error ? Number(error.errcode) & 0xff : 0
}
