/** What volumes are made from, asked of the API server with the identity of the node. */
import { ClusterTrustBundles } from '#apis/certificates/v1beta1.ts'
import { ConfigMaps, type Node, Secrets } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { isNotFound } from '#meta/status.ts'

import type { PodTokens } from './pod-tokens.ts'
import { trustAnchors } from './trust-anchors.ts'
import type { VolumeSources } from './volume-plugin.ts'

export interface VolumeSourcesOptions {
  readonly client: ApiClient
  readonly tokens: PodTokens
  readonly node: () => Node | undefined
  /** Of the machine, as long as the node has not been read. */
  readonly memoryBytes: number
}

export function createVolumeSources({ client, tokens, node, memoryBytes }: VolumeSourcesOptions): VolumeSources {
  return {
    configMap: ({ metadata: { namespace } }, name) => client.get(ConfigMaps, { namespace, name }).catch(noneIfMissing),
    secret: ({ metadata: { namespace } }, name) => client.get(Secrets, { namespace, name }).catch(noneIfMissing),
    token: (ask) => tokens.get(ask),
    trustAnchors: async (ask) => trustAnchors((await client.list(ClusterTrustBundles)).items, ask),
    allocatable: () => node()?.status.allocatable ?? { memory: String(memoryBytes) },
  }
}

function noneIfMissing(error: unknown): undefined {
  if (!isNotFound(error)) throw error
}
