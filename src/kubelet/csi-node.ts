/** CSINode: what drivers of volumes write about a node. Its kubelet makes it, also where there is no driver. */
import { CSINodes } from '#apis/storage/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { isAlreadyExists } from '#meta/status.ts'

/** The node, as what belongs to it refers to it. */
export interface NodeOwner {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
}

/** Drivers register themselves in it; a node without it is not complete. One that is there is left as it is. */
export async function describeDrivers(client: ApiClient, owner: NodeOwner): Promise<void> {
  const metadata = { name: owner.name, annotations: { [MIGRATED]: MIGRATED_PLUGINS }, ownerReferences: [owner] }
  await client.create(CSINodes, { metadata, spec: { drivers: [] } }).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error
  })
}

const MIGRATED = 'storage.alpha.kubernetes.io/migrated-plugins'
const MIGRATED_PLUGINS = [
  'aws-ebs',
  'azure-disk',
  'azure-file',
  'cinder',
  'gce-pd',
  'portworx-volume',
  'vsphere-volume',
]
  .map((name) => `kubernetes.io/${name}`)
  .join(',')
