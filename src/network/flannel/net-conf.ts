/** Parses flannel's net-conf.json: pod networks and backend. Pure. */
import { type Cidr, formatCidr, parseCidr } from '#lib/net/cidr.ts'

export interface VxlanBackend {
  readonly type: 'vxlan'
  readonly vni: number
  readonly port: number
  /** Whether nodes of one network use direct routes instead of VXLAN. */
  readonly directRouting: boolean
  readonly learning: boolean
  readonly gbp: boolean
  /** Undefined: the interface's MTU minus the VXLAN overhead. */
  readonly mtu?: number
}

export interface HostGatewayBackend {
  readonly type: 'host-gw'
  readonly mtu?: number
}

/** Only pods of one node reach each other; no routes are created. */
export interface AllocBackend {
  readonly type: 'alloc'
  readonly mtu?: number
}

export type FlannelBackend = VxlanBackend | HostGatewayBackend | AllocBackend

export interface NetConf {
  /** Undefined: the family is off. */
  readonly network?: string
  readonly ipv6Network?: string
  readonly backend: FlannelBackend
}

export class NetConfError extends Error {}

const MAX_VNI = 2 ** 24 - 1

/** The defaults: the kernel's port, which is older than the IANA number. */
const LINUX_DEFAULTS = { vni: 1, port: 8472 }

/** Case-insensitive like flannel's. Throws NetConfError. */
export function parseNetConf(
  text: string,
  defaults: { readonly vni: number; readonly port: number } = LINUX_DEFAULTS,
): NetConf {
  const conf = caseless(objectOf(text), ['Network', 'IPv6Network', 'EnableIPv4', 'EnableIPv6', 'Backend'])
  const hasV4 = conf['EnableIPv4'] ?? true
  const hasV6 = conf['EnableIPv6'] ?? false
  if (hasV4 !== true && hasV6 !== true)
    throw new NetConfError('please specify at least one of EnableIPv4 and EnableIPv6')
  const network = hasV4 === true ? rangeOf(conf['Network'], 4, 'Network') : undefined
  const ipv6Network = hasV6 === true ? rangeOf(conf['IPv6Network'], 6, 'IPv6Network') : undefined
  return {
    ...(network !== undefined && { network }),
    ...(ipv6Network !== undefined && { ipv6Network }),
    backend: backendOf((conf['Backend'] ?? {}) as Readonly<Record<string, unknown>>, defaults),
  }
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const found: unknown = JSON.parse(text)
    if (typeof found === 'object' && found !== null && !Array.isArray(found)) return found as Record<string, unknown>
  } catch (cause) {
    throw new NetConfError(`the network configuration is not JSON: ${(cause as Error).message}`, { cause })
  }
  throw new NetConfError('the network configuration is not an object')
}

function rangeOf(value: unknown, family: 4 | 6, name: string): string {
  const found: Cidr | undefined = typeof value === 'string' ? parseCidr(value) : undefined
  if (found?.family !== family) throw new NetConfError(`${name} is not an IPv${family} CIDR: ${JSON.stringify(value)}`)
  return formatCidr(found)
}

/** Maps the given keys to their canonical spelling. */
export function caseless(
  given: Readonly<Record<string, unknown>>,
  names: readonly string[],
): Readonly<Record<string, unknown>> {
  const byName = new Map(names.map((name) => [name.toLowerCase(), name]))
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [byName.get(name.toLowerCase()) ?? name, value]),
  )
}

const BACKEND_NAMES = ['Type', 'MTU', 'VNI', 'Port', 'DirectRouting', 'Learning', 'GBP', 'Name', 'MacPrefix']

function backendOf(
  given: Readonly<Record<string, unknown>>,
  defaults: { readonly vni: number; readonly port: number },
): FlannelBackend {
  const found = caseless(given, BACKEND_NAMES)
  // flannel's default.
  const type = found['Type'] ?? 'udp'
  const mtu = numberOf(found, 'MTU', 0, 65_535)
  const size = mtu === 0 ? {} : { mtu }
  if (type === 'host-gw' || type === 'alloc') return { type, ...size }
  if (type !== 'vxlan')
    throw new NetConfError(`unknown backend type: ${JSON.stringify(type)}; use vxlan, host-gw or alloc`)
  return {
    type,
    vni: numberOf(found, 'VNI', defaults.vni, MAX_VNI),
    port: numberOf(found, 'Port', 0, 65_535) || defaults.port,
    directRouting: found['DirectRouting'] === true,
    learning: found['Learning'] === true,
    gbp: found['GBP'] === true,
    ...size,
  }
}

function numberOf(from: Readonly<Record<string, unknown>>, name: string, fallback: number, most: number): number {
  const value = from[name] ?? fallback
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= most) return value
  throw new NetConfError(
    `error decoding backend config: ${name} is not a number up to ${most}: ${JSON.stringify(value)}`,
  )
}
