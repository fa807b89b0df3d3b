/** Parses pod CIDR ranges and node mask sizes from the flags. Pure. */
import { type CidrAllocator, createCidrAllocator } from '#lib/net/cidr-allocator.ts'
import { type Cidr, overlaps, parseCidr } from '#lib/net/cidr.ts'

import type { ControllerSettings } from '../../settings.ts'

/** The ranges in order; each node gets a CIDR of every range. Throws upstream's errors for invalid flags. */
export function planRanges(settings: ControllerSettings): CidrAllocator[] {
  checkAllocator(settings['cidr-allocator-type'])
  const ranges = clusterRanges(settings['cluster-cidr'])
  const services = serviceRanges(settings['service-cluster-ip-range'])
  const sizes = sizesOf(ranges, settings)
  return ranges.map((range, at) => {
    const size = sizes[at] ?? 0
    if (range.prefixLength > size)
      throw new Error(
        'Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to --node-cidr-mask-size configured for CIDR family',
      )
    const allocator = createCidrAllocator(range, size)
    for (const taken of services) if (overlaps(range, taken)) allocator.occupy(taken)
    return allocator
  })
}

function checkAllocator(type: string): void {
  if (type === 'RangeAllocator') return
  if (type === 'CloudAllocator')
    throw new Error("--cidr-allocator-type is set to 'CloudAllocator' but cloud provider is not configured")
  if (type === 'IPAMFromCluster' || type === 'IPAMFromCloud')
    throw new Error('Error trying to Init(): legacy cloud provider support disabled at build time')
  throw new Error(`invalid CIDR allocator type: ${type}`)
}

function clusterRanges(text: string): Cidr[] {
  const ranges = text
    .trim()
    .split(',')
    .map((part, at) => {
      const range = parseCidr(part, { sloppy: true })
      if (range === undefined) throw new Error(`invalid CIDR[${at}]: <nil> (invalid CIDR address: ${part})`)
      return range
    })
  if (ranges.length > 1 && !isDualStack(ranges))
    throw new Error(
      `len of ClusterCIDRs==${ranges.length} and they are not configured as dual stack (at least one from each IPFamily`,
    )
  if (ranges.length > 2) throw new Error(`length of clusterCIDRs is:${ranges.length} more than max allowed of 2`)
  return ranges
}

function isDualStack(ranges: readonly Cidr[]): boolean {
  return new Set(ranges.map(({ family }) => family)).size === 2
}

/** An invalid range is ignored. */
function serviceRanges(text: string): Cidr[] {
  const ranges = text.split(',').flatMap((part) => parseCidr(part.trim(), { sloppy: true }) ?? [])
  if (ranges.length === 2 && !isDualStack(ranges))
    throw new Error('serviceCIDR and secondaryServiceCIDR are not dualstack (from different IPfamiles)')
  return ranges
}

const DEFAULTS = { 4: 24, 6: 64 } as const

/** The mask size for each range. */
function sizesOf(ranges: readonly Cidr[], settings: ControllerSettings): number[] {
  const [all, v4, v6] = [
    settings['node-cidr-mask-size'],
    settings['node-cidr-mask-size-ipv4'],
    settings['node-cidr-mask-size-ipv6'],
  ]
  const complaint = sizeComplaint(ranges, { all, v4, v6 })
  if (complaint !== undefined) throw new Error(complaint)
  return ranges.map(({ family }) => all || (family === 4 ? v4 : v6) || DEFAULTS[family])
}

interface Sizes {
  readonly all: number
  readonly v4: number
  readonly v6: number
}

function sizeComplaint(ranges: readonly Cidr[], { all, v4, v6 }: Sizes): string | undefined {
  if (ranges.length > 1)
    return all === 0 ? undefined : 'usage of --node-cidr-mask-size is not allowed with dual-stack clusters'
  if (all !== 0 && (v4 !== 0 || v6 !== 0))
    return 'usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if --node-cidr-mask-size is set. For dual-stack clusters please unset it and use IPFamily specific flags'
  const isIpv6 = ranges[0]?.family === 6
  if (v4 !== 0 && isIpv6) return 'usage of --node-cidr-mask-size-ipv4 is not allowed for a single-stack IPv6 cluster'
  if (v6 !== 0 && !isIpv6) return 'usage of --node-cidr-mask-size-ipv6 is not allowed for a single-stack IPv4 cluster'
  return undefined
}
