/** The files of the web console in the data directory of a cluster: the log-in link and the sessions. */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'

import type { SessionStore, StoredSession } from '#component/console/one-cluster/sessions.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'

const LINK_FILE = 'console-link'
const SESSIONS_FILE = 'console-sessions.json'
const OWNER_ONLY = { mode: 0o600 }

export function writeConsoleLink(dataDir: string, link: string): Promise<void> {
  return writeFileAtomically(join(dataDir, LINK_FILE), `${link}\n`, OWNER_ONLY)
}

/** Undefined: the cluster has no console, or does not run. */
export async function readConsoleLink(dataDir: string): Promise<string | undefined> {
  const text = await readText(join(dataDir, LINK_FILE))
  return text?.trim()
}

export function removeConsoleLink(dataDir: string): Promise<void> {
  return rm(join(dataDir, LINK_FILE), { force: true })
}

/** Reading skips an unreadable file: people log in again. */
export function sessionsIn(dataDir: string): SessionStore {
  const file = join(dataDir, SESSIONS_FILE)
  return {
    async read() {
      const text = await readText(file)
      return text === undefined ? [] : storedSessions(text)
    },
    write: (sessions) => writeFileAtomically(file, `${JSON.stringify(sessions)}\n`, OWNER_ONLY),
  }
}

function storedSessions(text: string): readonly StoredSession[] {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value.filter(isStored) : []
  } catch {
    return []
  }
}

function isStored(value: unknown): value is StoredSession {
  const { hash, expiresAtMs, usedAtMs } = (value ?? {}) as Partial<StoredSession>
  return typeof hash === 'string' && Number.isFinite(expiresAtMs) && Number.isFinite(usedAtMs)
}

async function readText(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
