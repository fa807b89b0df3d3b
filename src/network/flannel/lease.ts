/** Reads and writes leases of nodes in annotations, with flannel's names. Pure. */
import type { Node } from '#apis/core/v1.ts'
import { formatCidr, formatIp, nthAddress, parseCidr, parseIp } from '#lib/net/cidr.ts'

export const ANNOTATION_PREFIX = 'flannel.alpha.coreos.com'

/** The lease of one node in one family. Every field was parsed, so it is safe in a command. */
export interface Lease {
  readonly node: string
  readonly family: 4 | 6
  /** The range of its pods. */
  readonly subnet: string
  /** The first address of `subnet`, which the node's overlay link has. */
  readonly gateway: string
  /** The tunnel endpoint. */
  readonly publicIp: string
  readonly backendType: string
  readonly vni?: number
  readonly mac?: string
}

/** The lease of this node. */
export interface OwnLease {
  readonly backendType: string
  readonly families: readonly {
    readonly family: 4 | 6
    readonly publicIp: string
    /** Undefined: the backend has no data. */
    readonly data?: { readonly vni: number; readonly mac: string }
  }[]
}

const MAC = /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/

/** As flannel writes them: a prefix without a slash gets one. */
export function annotationNames(prefix: string = ANNOTATION_PREFIX): (name: string) => string {
  if (!prefix.includes('/')) return (name) => `${prefix}/${name}`
  return (name) => (prefix.endsWith('/') || prefix.endsWith('-') ? `${prefix}${name}` : `${prefix}-${name}`)
}

export function ownAnnotations(own: OwnLease, nameOf: (name: string) => string): Record<string, string> {
  const all: Record<string, string> = {
    [nameOf('backend-type')]: own.backendType,
    [nameOf('kube-subnet-manager')]: 'true',
  }
  for (const { family, publicIp, data } of own.families) {
    const text = data === undefined ? 'null' : JSON.stringify({ VNI: data.vni, VtepMAC: data.mac })
    all[nameOf(family === 4 ? 'backend-data' : 'backend-v6-data')] = text
    all[nameOf(family === 4 ? 'public-ip' : 'public-ipv6')] = publicIp
  }
  return all
}

/** Empty for a node without flannel or with invalid annotations. */
export function leasesOf({ metadata, spec }: Node, nameOf: (name: string) => string): readonly Lease[] {
  const annotations = metadata.annotations ?? {}
  if (annotations[nameOf('kube-subnet-manager')] !== 'true') return []
  const backendType = annotations[nameOf('backend-type')] ?? ''
  const node = metadata.name ?? ''
  return ([4, 6] as const).flatMap((family) => {
    const subnet = subnetOf(spec, family)
    const publicIp = parseIp(annotations[nameOf(family === 4 ? 'public-ip' : 'public-ipv6')] ?? '')
    if (subnet === undefined || publicIp?.family !== family) return []
    const data = backendData(annotations[nameOf(family === 4 ? 'backend-data' : 'backend-v6-data')] ?? '')
    const where = { subnet: formatCidr(subnet), gateway: nthAddress(subnet, 0), publicIp: formatIp(publicIp) }
    return [{ node, family, ...where, backendType, ...data }]
  })
}

export function subnetOf(spec: Node['spec'], family: 4 | 6): ReturnType<typeof parseCidr> {
  const all = spec.podCIDRs ?? (spec.podCIDR === undefined ? [] : [spec.podCIDR])
  return all.flatMap((text) => parseCidr(text) ?? []).find((one) => one.family === family)
}

function backendData(text: string): { readonly vni?: number; readonly mac?: string } {
  try {
    const { VNI, VtepMAC } = (JSON.parse(text) ?? {}) as { VNI?: unknown; VtepMAC?: unknown }
    const mac = typeof VtepMAC === 'string' ? VtepMAC.toLowerCase() : ''
    return { ...(typeof VNI === 'number' && { vni: VNI }), ...(MAC.test(mac) && { mac }) }
  } catch {
    return {}
  }
}

/** `/run/flannel/subnet.env`, for CNI's plugin and users. */
export function subnetEnv(facts: {
  readonly network?: string
  readonly ipv6Network?: string
  readonly subnets: readonly string[]
  readonly mtu: number
  readonly masquerades: boolean
}): string {
  const { network, ipv6Network, subnets, mtu, masquerades } = facts
  const first = (family: 4 | 6): string | undefined => {
    const block = subnets.flatMap((text) => parseCidr(text) ?? []).find((one) => one.family === family)
    return block && `${nthAddress(block, 1)}/${block.prefixLength}`
  }
  return [
    ...(network === undefined ? [] : [`FLANNEL_NETWORK=${network}`, `FLANNEL_SUBNET=${first(4) ?? ''}`]),
    ...(ipv6Network === undefined
      ? []
      : [`FLANNEL_IPV6_NETWORK=${ipv6Network}`, `FLANNEL_IPV6_SUBNET=${first(6) ?? ''}`]),
    `FLANNEL_MTU=${mtu}`,
    `FLANNEL_IPMASQ=${masquerades}`,
    '',
  ].join('\n')
}
