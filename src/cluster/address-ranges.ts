/** Parses the requested pod and service ranges: comma-separated as in upstream's flags, IPv4 or dual stack. Pure. */
import { containerdPaths } from '#containerd/paths.ts'
import { overlaps, parseCidr } from '#lib/net/cidr.ts'

/** Undefined: not requested. */
export interface RequestedRanges {
  readonly podCidr?: string
  readonly serviceCidr?: string
}

/** `10.244.0.0/16,fd00:10:244::/56`. */
export function rangesOf(list: string): readonly string[] {
  return list.split(',').filter((text) => text !== '')
}

const FLAG_OF = { podCidr: '--cluster-cidr', serviceCidr: '--service-cluster-ip-range' } as const

/** Why the ranges are invalid; undefined if they are valid. */
export function rangeFault(requested: RequestedRanges, before: RequestedRanges | undefined): string | undefined {
  for (const name of ['podCidr', 'serviceCidr'] as const) {
    const list = requested[name]
    if (list === undefined) continue
    const fault = listFault(list)
    if (fault !== undefined) return `${FLAG_OF[name]} ${fault}: "${list}"`
    const has = before?.[name]
    if (has !== undefined && has !== list)
      return `${FLAG_OF[name]} cannot change: the cluster that is there has ${has}; another needs another --data-dir`
  }
  return pairFault({ ...requested, ...before })
}

function listFault(list: string): string | undefined {
  const blocks = rangesOf(list).map((text) => parseCidr(text))
  const families = blocks.map((block) => block?.family)
  if (families.includes(undefined)) return 'is no list of ranges'
  if (families[0] !== 4) return 'must begin with a range of IPv4'
  return families.length > 2 || families[1] === 4 ? 'must have one range of each family at most' : undefined
}

function pairFault({ podCidr, serviceCidr }: RequestedRanges): string | undefined {
  if (podCidr === undefined || serviceCidr === undefined) {
    const only = podCidr ?? serviceCidr ?? ''
    return rangesOf(only).length === 2
      ? `${Object.values(FLAG_OF).join(' and ')} are needed both, each with ranges of both families`
      : undefined
  }
  const [pods, services] = [podCidr, serviceCidr].map((list) => rangesOf(list).flatMap((text) => parseCidr(text) ?? []))
  if (pods?.length !== services?.length) return `${Object.values(FLAG_OF).join(' and ')} must be of the same families`
  return pods?.some((pod) => services?.some((service) => overlaps(pod, service))) === true
    ? `${Object.values(FLAG_OF).join(' and ')} overlap`
    : undefined
}

/**
 * The node ranges, which users do not choose: in dual stack with a unique local IPv6 range for this cluster (RFC 4193).
 */
export function nodeRanges(dataDir: string, nodeCidr: string, podCidr: string): string {
  const { id } = containerdPaths(dataDir)
  return rangesOf(podCidr).length < 2
    ? nodeCidr
    : `${nodeCidr},fd${id.slice(0, 2)}:${id.slice(2, 6)}:${id.slice(6, 10)}::/64`
}
