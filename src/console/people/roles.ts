/** The roles of a management server, and the requests that change them. */
import type { PolicyRule } from '#apis/rbac/v1.ts'

import { send, sendForJson } from '../api/request.ts'
import { inWords } from './refusal.ts'

export type Scope = 'global' | 'cluster' | 'project'

export interface RoleSpec {
  readonly scope: Scope
  readonly displayName?: string
  readonly description?: string
  readonly rules: readonly PolicyRule[]
  /** A ClusterRole of the cluster, whose rules the members get too. */
  readonly inherits?: string
  /** New users get it. Global roles only. */
  readonly isDefault?: boolean
}

export interface ServerRole {
  readonly metadata: { readonly name: string }
  readonly spec: RoleSpec
}

export const SCOPES: readonly (readonly [scope: Scope, title: string])[] = [
  ['global', 'this server'],
  ['cluster', 'a cluster'],
  ['project', 'a project'],
]

export function titleOfRole({ metadata, spec }: ServerRole): string {
  return spec.displayName ?? metadata.name
}

/** The server names the roles that people create `r-…`. It restores all others when it starts. */
export function isCustom({ metadata }: ServerRole): boolean {
  return metadata.name.startsWith('r-')
}

export async function loadRoles(signal?: AbortSignal): Promise<readonly ServerRole[]> {
  const { items } = await sendForJson<{ items: readonly ServerRole[] }>('/v3/roles', { signal })
  return items.toSorted((a, b) => (titleOfRole(a) < titleOfRole(b) ? -1 : 1))
}

export function createRole(spec: RoleSpec): Promise<ServerRole> {
  return inWords(sendForJson('/v3/roles', { method: 'POST', body: spec }))
}

export async function changeRole(name: string, change: Partial<Omit<RoleSpec, 'scope'>>): Promise<void> {
  await inWords(send(pathOf(name), { method: 'PATCH', body: change }))
}

export async function deleteRole(name: string): Promise<void> {
  await send(pathOf(name), { method: 'DELETE' })
}

function pathOf(name: string): string {
  return `/v3/roles/${encodeURIComponent(name)}`
}
