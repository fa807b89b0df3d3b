/** Waiting until objects are gone: their own deletion, not that of others who took their names since. */
import { isForbidden, isNotFound, statusOf } from '#meta/status.ts'

import type { Info } from './selecting.ts'
import type { Session } from './session.ts'
import { awaited, lateFor } from './wait/awaited.ts'

/** For those who wait for ever. */
const WEEK_MS = 7 * 24 * 3600_000

export interface Deleted {
  readonly info: Info
  /** Of what was deleted; empty when the server did not say. */
  readonly uid: string
}

/** Throws KubectlError when they do not go in time. Who may not watch does not wait. */
export async function waitUntilGone(session: Session, deleted: readonly Deleted[], timeoutMs: number): Promise<void> {
  const { clock } = await session.client()
  const end = clock.elapsed() + (timeoutMs === 0 ? WEEK_MS : timeoutMs)
  for (const one of deleted) {
    try {
      await goneBy(session, one, end - clock.elapsed())
    } catch (error) {
      if (isForbidden(error) || statusOf(error)?.code === 405) return
      throw error
    }
  }
}

async function goneBy(session: Session, { info, uid }: Deleted, leftMs: number): Promise<void> {
  const { kind, namespace, name } = info
  const rest = await session.rest()
  const isGone = (now: { readonly metadata: { readonly uid?: string } } | undefined): boolean =>
    now === undefined || (uid !== '' && now.metadata.uid !== uid)
  // Most are gone by now, and a server that may not be watched can be asked.
  const now = await rest.get({ kind, namespace, name }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error
    return undefined
  })
  if (isGone(now)) return
  await awaited(session, info, { timeoutMs: leftMs, late: lateFor(info) }, isGone)
}
