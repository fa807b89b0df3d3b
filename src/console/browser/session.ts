/** The session: its user, and whether this server has one cluster (`hyperkube up`) or many (`hyperkube server`). */
import { signal, type Signal } from '@preact/signals'

import { CLUSTERS_PATH } from '../api/cluster-paths.ts'
import { sendForJson, sessionEvents } from '../api/request.ts'

export interface SessionUser {
  readonly name: string
  readonly username: string
  readonly displayName?: string
  readonly isAdministrator?: boolean
  readonly mustChangePassword?: boolean
  readonly groups?: readonly string[]
  /** Of a management server: the permissions at its routes, such as `manage users`. */
  readonly rights?: readonly string[]
}

/** Of the user of this page, at the routes of a management server. */
export function hasRight(right: string): boolean {
  return session.value?.user?.rights?.includes(right) === true
}

export interface LoginProvider {
  readonly name: string
  readonly type: string
  readonly displayName: string
}

export interface Session {
  readonly mode: 'one-cluster' | 'many-clusters'
  readonly version: string
  readonly user: SessionUser | null
  readonly clusters?: readonly { readonly name: string; readonly displayName: string }[]
  readonly providers?: readonly LoginProvider[]
}

/** Undefined until the server has answered. */
export const session: Signal<Session | undefined> = signal(undefined)
/** The session has ended while the page was in use. The page stays, under a log-in dialog. */
export const isSessionExpired: Signal<boolean> = signal(false)

sessionEvents.addEventListener('unauthorized', () => {
  if (session.value?.user) isSessionExpired.value = true
})

export async function loadSession(): Promise<Session> {
  const found = await sendForJson<Session>('/ui/session')
  const loaded = found.mode === 'many-clusters' && found.user !== null ? await withClusters(found) : found
  session.value = loaded
  if (loaded.user !== null) isSessionExpired.value = false
  return loaded
}

interface NamedCluster {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly displayName: string }
}

/** Their names, for the bar and the palette. A page that cannot have them shows the ids. */
async function withClusters(found: Session): Promise<Session> {
  const { items } = await sendForJson<{ items: readonly NamedCluster[] }>(CLUSTERS_PATH).catch(() => ({ items: [] }))
  return { ...found, clusters: items.map(({ metadata, spec }) => ({ ...metadata, displayName: spec.displayName })) }
}
