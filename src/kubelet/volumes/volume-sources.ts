/** Reads the API objects that volumes need, with the identity of the node. */
import { ClusterTrustBundles } from '#apis/certificates/v1beta1.ts'
import { type Node, PersistentVolumeClaims, PersistentVolumes } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'

import type { PodObjects } from '../object-cache.ts'
import type { PodCertificates } from './pod-certificates.ts'
import type { PodTokens } from './pod-tokens.ts'
import { trustAnchors } from './trust-anchors.ts'
import type { VolumeSources } from './volume-plugin.ts'

export interface VolumeSourcesOptions {
  readonly client: ApiClient
  readonly objects: PodObjects
  readonly tokens: PodTokens
  readonly certificates: PodCertificates
  readonly node: () => Node | undefined
  /** Memory of the machine, used until the Node is read. */
  readonly memoryBytes: number
}

export function createVolumeSources(options: VolumeSourcesOptions): VolumeSources {
  const { client, objects, tokens, certificates, node, memoryBytes } = options
  return {
    configMap: (pod, name) => objects.configMap(pod, name),
    secret: (pod, name) => objects.secret(pod, name),
    token: (request) => tokens.get(request),
    trustAnchors: async (request) => trustAnchors((await client.list(ClusterTrustBundles)).items, request),
    certificate: (request) => certificates.get(request),
    claim: ({ metadata: { namespace } }, name) => client.get(PersistentVolumeClaims, { namespace, name }),
    persistentVolume: (name) => client.get(PersistentVolumes, { name }),
    node,
    allocatable: () => node()?.status.allocatable ?? { memory: String(memoryBytes) },
  }
}
