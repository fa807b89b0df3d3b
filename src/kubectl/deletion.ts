/** Waits until objects have been deleted. A new object with the same name does not count. */
import { isForbidden, isNotFound, statusOf } from '#meta/status.ts'

import type { Info } from './builder/select-options.ts'
import type { Session } from './session/session.ts'
import { awaited, lateFor } from './wait/awaited.ts'

/** The timeout without a limit. */
const WEEK_MS = 7 * 24 * 3600_000

export interface Deletion {
  readonly info: Info
  /** The uid of the deleted object; empty if the server did not return it. */
  readonly uid: string
}

/** Throws KubectlError after the timeout. Without permission to watch it does not wait. */
export async function waitUntilGone(session: Session, deleted: readonly Deletion[], timeoutMs: number): Promise<void> {
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

async function goneBy(session: Session, { info, uid }: Deletion, leftMs: number): Promise<void> {
  const { kind, namespace, name } = info
  const rest = await session.rest()
  const isGone = (now: { readonly metadata: { readonly uid?: string } } | undefined): boolean =>
    now === undefined || (uid !== '' && now.metadata.uid !== uid)
  // Most objects have disappeared by now, and a get works even where a watch is forbidden.
  const now = await rest.get({ kind, namespace, name }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error
    return undefined
  })
  if (isGone(now)) return
  await awaited(session, info, { timeoutMs: leftMs, late: lateFor(info) }, isGone)
}
