/** Members of a management server: who has which role, in the server, in a cluster or in a project. */
import { clusterPath } from '../api/cluster-paths.ts'
import { send, sendForJson } from '../api/request.ts'
import { inWords } from './refusal.ts'
import type { Scope } from './roles.ts'

export interface MemberSpec {
  readonly role: string
  /** Either `user` or `group` is set. */
  readonly user?: string
  /** Of an identity provider, as `<provider>:<group>`. */
  readonly group?: string
  readonly cluster?: string
  readonly project?: string
}

export interface Member {
  readonly metadata: { readonly name: string }
  readonly spec: MemberSpec
}

export function scopeOf({ spec }: Member): Scope {
  if (spec.project !== undefined) return 'project'
  return spec.cluster === undefined ? 'global' : 'cluster'
}

/** Those of the server, or with a name of a cluster, those of the cluster and of its projects. */
export async function loadMembers(cluster: string, signal?: AbortSignal): Promise<readonly Member[]> {
  return (await sendForJson<{ items: readonly Member[] }>(pathOf(cluster), { signal })).items
}

/** `place.cluster` is empty for members of the server. */
export interface MemberScope {
  readonly cluster: string
  readonly project?: string | undefined
}

export async function addMember(
  { cluster, project }: MemberScope,
  { role, user, group }: Pick<MemberSpec, 'role' | 'user' | 'group'>,
): Promise<void> {
  const body = { role, user, group, project }
  await inWords(send(pathOf(cluster), { method: 'POST', body }))
}

export async function removeMember({ cluster }: MemberScope, name: string): Promise<void> {
  await inWords(send(`${pathOf(cluster)}/${encodeURIComponent(name)}`, { method: 'DELETE' }))
}

function pathOf(cluster: string): string {
  return cluster === '' ? '/v3/members' : `${clusterPath(cluster)}/members`
}
