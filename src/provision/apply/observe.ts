/** Observes the state of machines and of the cluster, without changing anything. */
import type { Clock } from '#lib/clock.ts'

import { type DesiredCluster, type DesiredHost, type Health, manifestFile } from '../desired.ts'
import type { Machine } from '../machine.ts'
import { type EtcdMember, type Manifest, NO_MANIFEST, type Observed, type ObservedHost } from '../plan/observed.ts'
import { MACHINES_AT_ONCE } from '../plan/step.ts'
import type { ClusterApi } from './cluster-api.ts'
import { listMembers } from './etcd-members.ts'

export interface ObserveOptions {
  /** Undefined: nothing of ours is installed. Rejects if it is unreachable. */
  reach(name: string): Promise<Machine | undefined>
  readonly api: ClusterApi
  readonly clock: Clock
}

export async function observeCluster(desired: DesiredCluster, sight: ObserveOptions): Promise<Observed> {
  const hosts = new Map<string, ObservedHost>()
  const names = new Set(desired.hosts.map(({ name }) => name))
  const leaving = desired.leaving.filter(({ name }) => !names.has(name))
  const queue: LookedAt[] = [...desired.hosts, ...leaving.map(({ name }) => ({ name, ...NOTHING }))]
  const work = async (): Promise<void> => {
    for (let host = queue.shift(); host !== undefined; host = queue.shift())
      hosts.set(host.name, await observeHost(host, desired, sight))
  }
  await Promise.all(Array.from({ length: MACHINES_AT_ONCE }, work))
  const members = await findMembers(desired, hosts, sight)
  const nodes = members === undefined ? undefined : await sight.api.nodes().catch(() => undefined)
  const savedState = nodes === undefined ? undefined : await sight.api.savedState().catch(() => undefined)
  const addons = nodes === undefined ? new Map<string, string>() : await sight.api.addons().catch(() => new Map())
  return { hosts, members, nodes, savedState, addons }
}

type LookedAt = Pick<DesiredHost, 'name' | 'files' | 'uploads' | 'services'>
/** For a leaving machine only its manifest matters. */
const NOTHING = { files: [], uploads: [], services: [] }

async function observeHost(host: LookedAt, { home }: DesiredCluster, sight: ObserveOptions): Promise<ObservedHost> {
  try {
    const machine = await sight.reach(host.name)
    if (machine === undefined) return { state: 'bare' }
    const observedAt = sight.clock.now()
    const [facts, manifest] = await Promise.all([machine.facts({}), readManifest(machine, home)])
    const files = new Set([
      ...host.files.map(({ path }) => path),
      ...host.uploads.map(({ path }) => path),
      ...manifest.files,
    ])
    const services = new Set([...host.services.map(({ spec }) => spec.name), ...manifest.services])
    const seen = await machine.look({ files: [...files], services: [...services] })
    return { state: 'seen', facts, observedAt, seen, manifest }
  } catch (error) {
    return { state: 'unreachable', reason: (error as Error).message }
  }
}

async function readManifest(machine: Machine, home: string): Promise<Manifest> {
  const { content } = await machine.read({ path: manifestFile(home) })
  return content === undefined ? NO_MANIFEST : (JSON.parse(content.toString()) as Manifest)
}

/** The members according to the first machine with a healthy one. */
async function findMembers(
  { hosts, etcd }: DesiredCluster,
  found: ReadonlyMap<string, ObservedHost>,
  sight: ObserveOptions,
): Promise<readonly EtcdMember[] | undefined> {
  for (const host of hosts) {
    const { name, roles, services } = host
    const seen = found.get(name)
    const service = services.find(({ plane }) => plane === 'etcd')
    if (!roles.includes('etcd') || seen?.state !== 'seen' || service === undefined) continue
    if (seen.seen.services[service.spec.name]?.isRunning !== true) continue
    const members = await membersOf(await sight.reach(name), etcd.health(host))
    if (members !== undefined) return members
  }
  return undefined
}

async function membersOf(machine: Machine | undefined, health: Health): Promise<readonly EtcdMember[] | undefined> {
  try {
    if (machine === undefined) return undefined
    const { status } = await machine.http({ ...health, timeoutMs: WELL_MS })
    return status === 200 ? await listMembers(machine, health) : undefined
  } catch {
    return undefined
  }
}

const WELL_MS = 15_000
