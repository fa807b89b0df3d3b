/**
 * The CSINode object of a node. CSI drivers add themselves to it; the kubelet creates it even if there is no driver.
 */
import { CSINodes } from '#apis/storage/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { isAlreadyExists } from '#meta/status.ts'

/** The owner reference of objects that belong to the node. */
export interface NodeOwner {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
}

/** Creates the CSINode. An existing one is left unchanged. */
export async function createCsiNode(client: ApiClient, owner: NodeOwner): Promise<void> {
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
