/** The users of a management server, and the requests that change them. */
import { send, sendForJson } from '../api/request.ts'
import type { Tone } from '../parts/tone.ts'

export interface ServerUser {
  /** `u-x7k2p`: also the name of the user in each cluster. */
  readonly name: string
  /** For log-ins. */
  readonly username: string
  readonly displayName: string
  readonly disabled: boolean
  readonly mustChangePassword: boolean
  readonly identities: readonly { readonly provider: string; readonly subject: string }[]
  /** Of identity providers, as `<provider>:<group>`. */
  readonly groups: readonly string[]
  readonly createdAt?: string
  readonly lastLoginAt?: string
}

export interface UserState {
  readonly text: string
  readonly tone: Tone
}

export function stateOfUser({ disabled, mustChangePassword }: ServerUser): UserState {
  if (disabled) return { text: 'Disabled', tone: 'bad' }
  if (mustChangePassword) return { text: 'Must change the password', tone: 'busy' }
  return { text: 'Active', tone: 'good' }
}

export async function loadUsers(signal?: AbortSignal): Promise<readonly ServerUser[]> {
  const { items } = await sendForJson<{ items: readonly ServerUser[] }>('/v3/users', { signal })
  return items.toSorted((a, b) => (a.username < b.username ? -1 : 1))
}

export interface NewUser {
  readonly username: string
  readonly displayName?: string
  /** Without one, only an identity provider can log the user in. */
  readonly password?: string
  readonly mustChangePassword?: boolean
}

export function createUser(user: NewUser): Promise<ServerUser> {
  return sendForJson('/v3/users', { method: 'POST', body: user })
}

/** A new password is for one log-in: the user must replace it. */
export interface UserChange {
  readonly displayName?: string
  readonly disabled?: boolean
  readonly password?: string
}

export async function changeUser(name: string, change: UserChange): Promise<void> {
  await send(pathOf(name), { method: 'PATCH', body: change })
}

export async function deleteUser(name: string): Promise<void> {
  await send(pathOf(name), { method: 'DELETE' })
}

function pathOf(name: string): string {
  return `/v3/users/${encodeURIComponent(name)}`
}
