/**
 * The fixed part of the iptables rules: base chains, jumps from built-in chains, and masquerading. Names, comments and
 * order are upstream's. Pure.
 */
import type { IptablesTable } from '#lib/net/iptables.ts'
import type { IpFamily } from '#model/services.ts'

import type { IptablesRenderSettings } from './rendering.ts'

export interface IptablesSettings extends IptablesRenderSettings {
  readonly family: IpFamily
  /** `0x004000`: the packet mark for masquerading. */
  readonly masqueradeMark: string
  /** Node port addresses; undefined: all of the node. */
  readonly nodePortIps: readonly string[] | undefined
  /** Whether node ports are also served on 127.0.0.1, which needs packets to 127.0.0.0/8 to be routed. */
  readonly localhostNodePorts: boolean
  /** Whether the kernel accepts out-of-window TCP packets. */
  readonly isTcpLiberal: boolean
  /** Whether iptables supports --random-fully. */
  readonly hasRandomFully: boolean
}

type Portal = 'filter' | 'nat'

export interface Jump {
  readonly table: Portal
  /** The built-in chain. */
  readonly from: string
  readonly to: string
  readonly condition: string
  /** Empty: none. */
  readonly comment: string
}

/** Its absence shows that the table was flushed. */
export const CANARY = 'KUBE-PROXY-CANARY'
/** Shared with the kubelet: created if missing, never deleted. */
const FIREWALL = 'KUBE-FIREWALL'

const NEW = '-m conntrack --ctstate NEW'
const EXTERNAL = ['KUBE-EXTERNAL-SERVICES', 'kubernetes externally-visible service portals'] as const
const LOAD_BALANCERS = ['KUBE-PROXY-FIREWALL', 'kubernetes load balancer firewall'] as const
const SERVICES = ['KUBE-SERVICES', 'kubernetes service portals'] as const

function jump(table: Portal, from: string, [to, comment]: readonly [string, string], condition = ''): Jump {
  return { table, from, to, condition, comment }
}

/** In upstream's order; each is inserted at the top. */
export const JUMPS: readonly Jump[] = [
  jump('filter', 'INPUT', EXTERNAL, NEW),
  jump('filter', 'FORWARD', EXTERNAL, NEW),
  jump('filter', 'INPUT', ['KUBE-NODEPORTS', 'kubernetes health check service ports']),
  jump('filter', 'FORWARD', SERVICES, NEW),
  jump('filter', 'OUTPUT', SERVICES, NEW),
  jump('filter', 'FORWARD', ['KUBE-FORWARD', 'kubernetes forwarding rules']),
  jump('filter', 'INPUT', LOAD_BALANCERS, NEW),
  jump('filter', 'OUTPUT', LOAD_BALANCERS, NEW),
  jump('filter', 'FORWARD', LOAD_BALANCERS, NEW),
  jump('nat', 'OUTPUT', SERVICES),
  jump('nat', 'PREROUTING', SERVICES),
  jump('nat', 'POSTROUTING', ['KUBE-POSTROUTING', 'kubernetes postrouting rules']),
]

/** As the kubelet creates them. */
export const KUBELET_JUMPS: readonly Jump[] = [
  jump('filter', 'INPUT', [FIREWALL, '']),
  jump('filter', 'OUTPUT', [FIREWALL, '']),
]

/** Our fixed chains. */
export const TOP_CHAINS: Readonly<Record<Portal, readonly string[]>> = {
  filter: ['KUBE-SERVICES', 'KUBE-EXTERNAL-SERVICES', 'KUBE-FORWARD', 'KUBE-NODEPORTS', 'KUBE-PROXY-FIREWALL'],
  nat: ['KUBE-SERVICES', 'KUBE-NODEPORTS', 'KUBE-POSTROUTING', 'KUBE-MARK-MASQ'],
}

export const TABLES: readonly IptablesTable[] = ['mangle', 'filter', 'nat']

/** Whether a line of `iptables-save` is this jump. */
export function isJump(line: string, { from, to, comment }: Jump): boolean {
  const isFromTo = line.startsWith(`-A ${from} `) && line.endsWith(` -j ${to}`)
  return isFromTo && (comment === '' ? !line.includes('--comment') : line.includes(`--comment "${comment}"`))
}

export function jumpRule({ from, to, condition, comment }: Jump): string {
  const explained = comment === '' ? [] : [`-m comment --comment "${comment}"`]
  return [`-I ${from}`, ...(condition === '' ? [] : [condition]), ...explained, `-j ${to}`].join(' ')
}

/** The line that creates or flushes a chain. */
export function chainLine(name: string): string {
  return `:${name} - [0:0]`
}

/** Further chains for the rules below. */
export function moreChains({ family, localhostNodePorts }: IptablesSettings): readonly string[] {
  return family === 'IPv4' && localhostNodePorts ? [FIREWALL] : []
}

/** Before the rules of Services. */
export function natHead({ masqueradeMark: mark, hasRandomFully }: IptablesSettings): string[] {
  return [
    `-A KUBE-POSTROUTING -m mark ! --mark ${mark}/${mark} -j RETURN`,
    // Clears the mark, so that the packet is masqueraded once.
    `-A KUBE-POSTROUTING -j MARK --xor-mark ${mark}`,
    `-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE${hasRandomFully ? ' --random-fully' : ''}`,
    `-A KUBE-MARK-MASQ -j MARK --or-mark ${mark}`,
  ]
}

const LAST = '-m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain"'

/** After the rules of Services: node ports. */
export function natTail({ family, nodePortIps, localhostNodePorts }: IptablesSettings): string[] {
  const to = '-j KUBE-NODEPORTS'
  if (nodePortIps !== undefined)
    return nodePortIps
      .filter((ip) => ip !== '::1' && (localhostNodePorts || !ip.startsWith('127.')))
      .map((ip) => `-A KUBE-SERVICES ${LAST} -d ${ip} ${to}`)
  const isOwn = '-m addrtype --dst-type LOCAL'
  if (family === 'IPv6') return [`-A KUBE-SERVICES ${LAST} ${isOwn} ! -d ::1/128 ${to}`]
  return [`-A KUBE-SERVICES ${LAST} ${isOwn}${localhostNodePorts ? '' : ' ! -d 127.0.0.0/8'} ${to}`]
}

export function filterRules(settings: IptablesSettings): string[] {
  const { masqueradeMark: mark, isTcpLiberal } = settings
  return [
    // When packets to 127.0.0.0/8 are routed, other machines must not reach it (CVE-2020-8558).
    ...moreChains(settings).map(
      (chain) =>
        `-A ${chain} -m comment --comment "block incoming localnet connections" -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP`,
    ),
    // An INVALID packet would reach the client with the endpoint's address and reset the connection.
    ...(isTcpLiberal ? [] : ['-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP']),
    `-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark ${mark}/${mark} -j ACCEPT`,
    '-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
  ]
}
