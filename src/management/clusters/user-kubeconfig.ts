/**
 * Writes the kubeconfig that a user downloads for a cluster. One context leads through the management server, further
 * ones directly to the cluster's authorized endpoint. All contexts have the same user.
 */
import { stringifyYaml } from '#lib/yaml/write.ts'

import type { AuthorizedEndpoint } from '../kinds/cluster.ts'

export interface UserKubeconfig {
  readonly name: string
  readonly server: string
  /** PEM; undefined: the public authorities. */
  readonly ca: string | undefined
  readonly token: string
  /** Only for a token of the cluster: the cluster knows no others. */
  readonly endpoint?: AuthorizedEndpoint | undefined
}

interface Way {
  readonly name: string
  readonly server: string
  readonly ca: string | undefined
}

export function userKubeconfig({ name, server, ca, token, endpoint }: UserKubeconfig): string {
  const ways = [{ name, server, ca }, ...directWays(name, endpoint)]
  return stringifyYaml({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: ways.map((way) => ({ name: way.name, cluster: { server: way.server, ...authority(way) } })),
    users: [{ name, user: { token } }],
    contexts: ways.map((way) => ({ name: way.name, context: { cluster: way.name, user: name } })),
    'current-context': name,
  })
}

function authority({ ca }: Way): object {
  return ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') }
}

const PORT = 6443

function directWays(name: string, endpoint: AuthorizedEndpoint | undefined): readonly Way[] {
  if (endpoint?.enabled !== true) return []
  const { fqdn = '', addresses = [], certificateAuthority = '' } = endpoint
  const ca = certificateAuthority === '' ? undefined : certificateAuthority
  if (fqdn !== '') return [{ name: `${name}-fqdn`, server: `https://${fqdn}`, ca }]
  return addresses.map((address) => {
    const hasPort = /:\d+$/.test(address)
    return { name: `${name}-${address}`, server: `https://${address}${hasPort ? '' : `:${PORT}`}`, ca }
  })
}
