/** Finds the address of a node's kubelet, and the container that a request names. */
import { type Node, Nodes, type Pod } from '#apis/core/v1.ts'
import { parseIp } from '#lib/net/cidr.ts'
import { badRequestError, failure, notFoundError } from '#meta/status-errors.ts'

import type { ObjectReader } from '../registry/resource.ts'
import type { KubeletSettings } from './backends.ts'

export interface KubeletLocation {
  readonly host: string
  readonly port: number
  /** The features that the Node declares. */
  readonly features: readonly string[]
}

/** Throws StatusError if the node or an address of a preferred type does not exist. */
export async function kubeletOf(
  nodeName: string,
  objects: ObjectReader,
  { addressTypes, port }: Pick<KubeletSettings, 'addressTypes' | 'port'>,
): Promise<KubeletLocation> {
  const node = await objects.get<Node>(Nodes, '', nodeName)
  if (node === undefined) throw notFoundError({ group: '', resource: 'nodes' }, nodeName)
  const { addresses = [], daemonEndpoints, declaredFeatures = [] } = node.status ?? {}
  const host = addressTypes
    .map((type) => addresses.find((address) => address.type === type)?.address)
    .find((address) => address !== undefined)
  if (host === undefined) {
    const known = addresses.map(({ type, address }) => `{${type} ${address}}`).join(' ')
    throw failure({ code: 500, message: `no preferred addresses found; known addresses: [${known}]` })
  }
  // The address becomes part of a URL; writers of Nodes must not control the rest of it (CVE-2022-3294).
  if (parseIp(host, { sloppy: true }) === undefined && !/^[a-z0-9_.-]+$/i.test(host)) {
    throw failure({ code: 500, message: `dial tcp: lookup ${host}: no such host` })
  }
  const own = daemonEndpoints?.kubeletEndpoint?.Port ?? 0
  return { host, port: own > 0 ? own : port, features: declaredFeatures }
}

/** `host:port`, with brackets for IPv6. */
export function hostPort(host: string, port: number | string): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** The container of the request, or the only one. Throws StatusError 400. */
export function chooseContainer({ metadata, spec }: Pod, wanted: string): string {
  const { containers, initContainers = [], ephemeralContainers = [] } = spec ?? { containers: [] }
  const { name: podName = '' } = metadata
  const names = [...initContainers, ...containers, ...ephemeralContainers].map(({ name }) => name)
  if (wanted !== '') {
    if (names.includes(wanted)) return wanted
    throw badRequestError(`container ${wanted} is not valid for pod ${podName}`)
  }
  const [only, ...others] = containers
  if (only === undefined) throw badRequestError(`a container name must be specified for pod ${podName}`)
  if (others.length === 0) return only.name
  throw badRequestError(`a container name must be specified for pod ${podName}, choose one of: [${names.join(' ')}]`)
}
