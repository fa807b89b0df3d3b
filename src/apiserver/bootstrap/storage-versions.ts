/**
 * Publishes StorageVersions: the version in which each server writes each resource. Requires the gate
 * StorageVersionAPI. Upstream's pkg/storageversion, v1.36.
 */
import {
  type ServerStorageVersion,
  type StorageVersionCondition,
  StorageVersions,
  type StorageVersionStatus,
} from '#apis/apiserverinternal/v1alpha1.ts'
import { knownGroupVersions, knownKinds } from '#apis/schemas.ts'
import type { Clock } from '#lib/clock.ts'
import { type AnyCondition, findCondition } from '#meta/conditions.ts'
import { apiVersionOf, compareVersions } from '#meta/kind.ts'
import { timeOf } from '#meta/time.ts'

import type { Registry } from '../registry/registry.ts'
import type { Resource } from '../registry/resource.ts'

/** Publishes all served resources. Does nothing if StorageVersions are not served. */
export async function publishStorageVersions(registry: Registry, serverId: string): Promise<void> {
  if (registry.storeOf(StorageVersions) === undefined) return
  const served = Map.groupBy(registry.served(), ({ resource }) => resource)
  for (const [resource, views] of served) {
    const versions = views.map(({ representation }) => apiVersionOf(representation.kind))
    await publish(registry, resource, versionsOf(resource, versions, serverId))
  }
}

function versionsOf({ kind }: Resource, served: readonly string[], serverId: string): ServerStorageVersion {
  const own = knownGroupVersions()
    .filter((one) => one.group === kind.group && knownKinds(one).includes(kind.kind))
    .sort((a, b) => compareVersions(b.version, a.version))
    .map(apiVersionOf)
  return {
    apiServerID: serverId,
    encodingVersion: apiVersionOf(kind),
    decodableVersions: [...new Set([...own, ...served])],
    // Versions of another group that serves the same objects do not count.
    servedVersions: own.filter((version) => served.includes(version)),
  }
}

async function publish(registry: Registry, { kind }: Resource, mine: ServerStorageVersion): Promise<void> {
  const name = `${kind.group === '' ? 'core' : kind.group}.${kind.plural}`
  const { writer, services } = registry
  await writer.ensure(StorageVersions, { metadata: { name }, spec: {}, status: {} })
  await writer.updateStatus(StorageVersions, { name }, (live) => ({
    ...live,
    status: withServer(live.status, mine, services.clock),
  }))
}

/** The status with the entry of one server and the condition of agreement. */
export function withServer(old: StorageVersionStatus, mine: ServerStorageVersion, clock: Clock): StorageVersionStatus {
  const { storageVersions: before = [], conditions = [] } = old
  const isKnown = before.some(({ apiServerID }) => apiServerID === mine.apiServerID)
  const storageVersions = isKnown
    ? before.map((one) => (one.apiServerID === mine.apiServerID ? mine : one))
    : [...before, mine]
  const versions = new Set(storageVersions.map(({ encodingVersion = '' }) => encodingVersion))
  const common = versions.size === 1 ? [...versions][0] : undefined
  return {
    storageVersions,
    ...(common !== undefined && { commonEncodingVersion: common }),
    conditions: [...conditions.filter(({ type }) => type !== AGREED), agreement(old, common, clock)],
  }
}

const AGREED = 'AllEncodingVersionsEqual'

/** The condition AllEncodingVersionsEqual. Its time also changes if the common version does. */
function agreement(old: StorageVersionStatus, common: string | undefined, clock: Clock): StorageVersionCondition {
  const { commonEncodingVersion: before, conditions } = old
  const known = findCondition(conditions as AnyCondition[] | undefined, AGREED)
  const is = common === undefined ? 'Unset' : 'Set'
  const status = common === undefined ? 'False' : 'True'
  const isMoved = common !== undefined && before !== undefined && common !== before
  const isKept = known?.status === status && !isMoved
  return {
    type: AGREED,
    status,
    lastTransitionTime: isKept ? (known.lastTransitionTime ?? null) : timeOf(clock.now()),
    reason: `CommonEncodingVersion${is}`,
    message: `Common encoding version ${is.toLowerCase()}`,
  }
}
