/** Removes entries of deleted API servers from StorageVersions. */
import {
  type ServerStorageVersion,
  type StorageVersion,
  type StorageVersionCondition,
  StorageVersions,
} from '#apis/apiserverinternal/v1alpha1.ts'
import { type Lease, Leases } from '#apis/coordination/v1.ts'
import { type AnyCondition, setCondition } from '#meta/conditions.ts'
import { keyOf, objectKey } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'
import type { Cache } from '#reconcile/cache.ts'
import { itself, related, rule } from '#reconcile/controller.ts'

import { type Controller, type ControllerContext, defineController } from '../controller.ts'

const NAMESPACE = 'kube-system'
/** The label of API server leases. */
const IDENTITY = 'apiserver.kubernetes.io/identity'

export const storageVersionGarbageCollectorController: Controller = defineController({
  name: 'storageversion-garbage-collector-controller',
  aliases: ['storage-version-gc'],
  account: 'storage-version-garbage-collector',
  gates: ['APIServerIdentity', 'StorageVersionAPI'],
  workers: 1,
  watches: [itself(StorageVersions), related(Leases, versionsOf)],
  rules: [
    rule('coordination.k8s.io', 'leases', 'get list watch'),
    rule('internal.apiserver.k8s.io', 'storageversions', 'delete get list watch'),
    rule('internal.apiserver.k8s.io', 'storageversions/status', 'get patch update'),
  ],

  async reconcile(name, context) {
    const { cache, client, signal } = context
    const known = cache.get(StorageVersions, name)
    const isStale = ({ apiServerID = '' }: ServerStorageVersion): boolean =>
      !isIdentity(cache.get(Leases, keyOf(NAMESPACE, apiServerID)))
    if (!(known?.status.storageVersions ?? []).some(isStale)) return
    const current = await client.get(StorageVersions, { name }, { signal }).catch(absent)
    const all = current?.status.storageVersions ?? []
    const living = await Promise.all(all.map((one) => isAlive(one, context)))
    const kept = all.filter((_one, at) => living[at])
    if (current === undefined || kept.length === all.length) return
    if (kept.length === 0) await client.delete(StorageVersions, { name }, { signal })
    else await client.updateStatus(StorageVersions, withServers(current, kept, context), { signal })
  },
})

/** StorageVersions with entries of a server without a lease. */
function versionsOf(lease: Lease, cache: Cache): string[] {
  if (lease.metadata.namespace !== NAMESPACE || !isIdentity(lease)) return []
  if (cache.get(Leases, objectKey(lease)) !== undefined) return []
  return [...cache.list(StorageVersions)]
    .filter(({ status }) => status.storageVersions?.some(({ apiServerID }) => apiServerID === lease.metadata.name))
    .map(objectKey)
}

function isIdentity(lease: Lease | undefined): boolean {
  return lease?.metadata.labels?.[IDENTITY] === 'kube-apiserver'
}

async function isAlive(
  { apiServerID: name = '' }: ServerStorageVersion,
  { client, signal }: ControllerContext,
): Promise<boolean> {
  return isIdentity(await client.get(Leases, { namespace: NAMESPACE, name }, { signal }).catch(absent))
}

function absent(error: unknown): undefined {
  if (!isNotFound(error)) throw error
  return undefined
}

/** Sets the common version, if all servers agree. */
export function withServers(
  version: StorageVersion,
  servers: ServerStorageVersion[],
  { clock }: Pick<ControllerContext, 'clock'>,
): StorageVersion {
  const { commonEncodingVersion: before, conditions: previous = [], ...rest } = version.status
  const versions = new Set(servers.map(({ encodingVersion }) => encodingVersion))
  const [common] = versions.size === 1 ? versions : []
  const conditions = previous.map((condition) => ({ ...condition }) as AnyCondition)
  const isTurned = before !== undefined && common !== undefined && before !== common
  const condition = {
    type: 'AllEncodingVersionsEqual',
    status: common === undefined ? 'False' : 'True',
    observedGeneration: version.metadata.generation ?? 0,
    reason: common === undefined ? 'CommonEncodingVersionUnset' : 'CommonEncodingVersionSet',
    message: common === undefined ? 'Common encoding version unset' : 'Common encoding version set',
  }
  setCondition(conditions, condition, clock)
  const nextConditions = conditions.map((one) =>
    isTurned && one.type === condition.type ? { ...one, lastTransitionTime: timeOf(clock.now()) } : one,
  ) as StorageVersionCondition[]
  const status = {
    ...rest,
    storageVersions: servers,
    ...(common !== undefined && { commonEncodingVersion: common }),
    conditions: nextConditions,
  }
  return { ...version, status }
}
