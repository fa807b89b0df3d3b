/** Calls etcd's membership API over JSON, through a machine with a member. */
import type { Health } from '../desired.ts'
import { type Machine, MachineError } from '../machine.ts'
import type { EtcdMember } from '../plan/observed.ts'

const TIMEOUT_MS = 10_000

interface MemberJson {
  readonly ID?: string
  readonly name?: string
  readonly peerURLs?: readonly string[]
}

async function ask(machine: Machine, health: Health, path: string, body: object): Promise<unknown> {
  const { url, ...files } = health
  const answer = await machine.http({
    ...files,
    method: 'POST',
    url: new URL(path, url).href,
    content: Buffer.from(JSON.stringify(body)),
    timeoutMs: TIMEOUT_MS,
  })
  if (answer.status !== 200) throw new MachineError(`etcd answers ${answer.status}: ${answer.text.trim()}`)
  return JSON.parse(answer.text)
}

/** Rejects if it does not respond. */
export async function listMembers(machine: Machine, health: Health): Promise<EtcdMember[]> {
  const { members = [] } = (await ask(machine, health, '/v3/cluster/member/list', {})) as { members?: MemberJson[] }
  return members.map(({ ID = '', name = '', peerURLs = [] }) => ({ id: ID, name, peerUrls: peerURLs }))
}

/** Has no effect if the member exists. */
export async function addMember(machine: Machine, health: Health, peerUrl: string): Promise<EtcdMember[]> {
  const before = await listMembers(machine, health)
  if (before.some(({ peerUrls }) => peerUrls.includes(peerUrl))) return before
  await ask(machine, health, '/v3/cluster/member/add', { peerURLs: [peerUrl] })
  return listMembers(machine, health)
}

/** Has no effect if the member is gone. */
export async function removeMember(machine: Machine, health: Health, peerUrl: string): Promise<void> {
  const found = (await listMembers(machine, health)).find(({ peerUrls }) => peerUrls.includes(peerUrl))
  if (found !== undefined) await ask(machine, health, '/v3/cluster/member/remove', { ID: found.id })
}
