/**
 * Reserves the uid of an imported cluster with a Secret named after it, so that two replicas never import the same
 * cluster. The Secret is deleted with the Cluster.
 */
import { createHash } from 'node:crypto'

import { type Secret, Secrets } from '#apis/core/v1.ts'
import { conflictError } from '#meta/status-errors.ts'
import { isAlreadyExists, isConflict, isNotFound, type StatusError } from '#meta/status.ts'

import { type Cluster, Clusters } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import { MANAGEMENT_NAMESPACE, type ManagementObjects } from '../objects.ts'

const MAX_TRIES = 5

/** Throws StatusError if another cluster has registered with this Cluster, or another Cluster has the uid. */
export async function recordUid(objects: ManagementObjects, cluster: Cluster, uid: string): Promise<void> {
  const name = cluster.metadata.name ?? ''
  if (!(await claimUid(objects, cluster, uid))) throw importedAlready(name)
  const withUid = (now: Cluster): Cluster | undefined => {
    if (now.status?.uid === uid) return undefined
    if (now.status?.uid !== undefined) throw otherCluster(name)
    return { ...now, status: { ...now.status, uid } }
  }
  await objects.change(Clusters, name, withUid, { subresource: 'status' })
}

export function otherCluster(name: string): StatusError {
  return conflictError(CLUSTERS, name, 'another cluster has registered with this name')
}

export function importedAlready(name: string, as?: string): StatusError {
  return conflictError(CLUSTERS, name, `this cluster is imported already${as === undefined ? '' : `, as "${as}"`}`)
}

const CLUSTERS = { group: GROUP, resource: 'clusters' }

/** False: another Cluster has the uid. */
async function claimUid(objects: ManagementObjects, { metadata }: Cluster, uid: string): Promise<boolean> {
  const { client } = objects
  const name = `agent-uid-${createHash('sha256').update(uid).digest('hex').slice(0, 40)}`
  const where = { namespace: MANAGEMENT_NAMESPACE, name }
  const owner = { apiVersion: `${GROUP}/v1`, kind: 'Cluster', name: metadata.name ?? '', uid: metadata.uid ?? '' }
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const found = await objects.secret(name)
    if (found !== undefined) {
      if (ownerOf(found) === owner.uid) return true
      if (!(await isLeftBehind(objects, found))) return false
      await client.delete(Secrets, where, { preconditions: preconditionsOf(found) }).catch(unlessGone)
    }
    try {
      await client.create(Secrets, { metadata: { ...where, ownerReferences: [owner] }, type: 'Opaque' })
      return true
    } catch (error) {
      if (!isAlreadyExists(error)) throw error
    }
  }
  return false
}

/** The Cluster was removed, and the garbage collector has not seen that yet. */
async function isLeftBehind({ client }: ManagementObjects, claim: Secret): Promise<boolean> {
  const [owner] = claim.metadata.ownerReferences ?? []
  if (owner === undefined) return true
  try {
    const { metadata } = await client.get(Clusters, { name: owner.name })
    return metadata.uid !== owner.uid
  } catch (error) {
    if (isNotFound(error)) return true
    throw error
  }
}

function ownerOf({ metadata }: Secret): string | undefined {
  return metadata.ownerReferences?.[0]?.uid
}

function preconditionsOf({ metadata: { uid } }: Secret): { readonly uid?: string } {
  return uid === undefined ? {} : { uid }
}

/** Another replica was faster. */
function unlessGone(error: unknown): void {
  if (!isNotFound(error) && !isConflict(error)) throw error
}
