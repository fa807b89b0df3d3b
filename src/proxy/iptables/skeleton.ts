/**
 * The part of the rules that is there whatever Services there are: chains at fixed places, ways from the kernel's own chains into
 * them, and what marks and masquerades packets. Names, comments and order are upstream's. Pure.
 */
import type { IptablesTable } from '#lib/iptables.ts'
import type { IpFamily } from '#model/services.ts'

import type { RenderSettings } from './rendering.ts'

export interface IptablesSettings extends RenderSettings {
  readonly family: IpFamily
  /** `0x004000`: what tells netfilter to masquerade a packet when it leaves. */
  readonly masqueradeMark: string
  /** Addresses at which node ports are served; undefined: all of the node. */
  readonly nodePortIps: readonly string[] | undefined
  /** Whether node ports are served at 127.0.0.1 as well, for which the kernel must have been told to route it. */
  readonly localhostNodePorts: boolean
  /** Whether the kernel takes packets of TCP that are out of its window. */
  readonly isTcpLiberal: boolean
  /** Whether iptables knows the word. */
  readonly hasRandomFully: boolean
}

type Portal = 'filter' | 'nat'

export interface Jump {
  readonly table: Portal
  /** The kernel's chain. */
  readonly from: string
  readonly to: string
  readonly condition: string
  /** Empty: none. */
  readonly comment: string
}

/** Its absence tells that somebody has emptied a table. */
export const CANARY = 'KUBE-PROXY-CANARY'
/** The kubelet's as well: made where it is missing, and never removed. */
const FIREWALL = 'KUBE-FIREWALL'

const NEW = '-m conntrack --ctstate NEW'
const EXTERNAL = ['KUBE-EXTERNAL-SERVICES', 'kubernetes externally-visible service portals'] as const
const LOAD_BALANCERS = ['KUBE-PROXY-FIREWALL', 'kubernetes load balancer firewall'] as const
const SERVICES = ['KUBE-SERVICES', 'kubernetes service portals'] as const

function jump(table: Portal, from: string, [to, comment]: readonly [string, string], condition = ''): Jump {
  return { table, from, to, condition, comment }
}

/** In upstream's order; each goes before what is there. */
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

/** As the kubelet makes them. */
export const KUBELET_JUMPS: readonly Jump[] = [
  jump('filter', 'INPUT', [FIREWALL, '']),
  jump('filter', 'OUTPUT', [FIREWALL, '']),
]

/** Ours alone, whatever Services there are. */
export const TOP_CHAINS: Readonly<Record<Portal, readonly string[]>> = {
  filter: ['KUBE-SERVICES', 'KUBE-EXTERNAL-SERVICES', 'KUBE-FORWARD', 'KUBE-NODEPORTS', 'KUBE-PROXY-FIREWALL'],
  nat: ['KUBE-SERVICES', 'KUBE-NODEPORTS', 'KUBE-POSTROUTING', 'KUBE-MARK-MASQ'],
}

export const TABLES: readonly IptablesTable[] = ['mangle', 'filter', 'nat']

/** Whether a line of `iptables-save` is such a rule. */
export function isJump(line: string, { from, to, comment }: Jump): boolean {
  const isFromTo = line.startsWith(`-A ${from} `) && line.endsWith(` -j ${to}`)
  return isFromTo && (comment === '' ? !line.includes('--comment') : line.includes(`--comment "${comment}"`))
}

export function jumpRule({ from, to, condition, comment }: Jump): string {
  const explained = comment === '' ? [] : [`-m comment --comment "${comment}"`]
  return [`-I ${from}`, ...(condition === '' ? [] : [condition]), ...explained, `-j ${to}`].join(' ')
}

/** Names one that is made where it is missing, and emptied. */
export function chainLine(name: string): string {
  return `:${name} - [0:0]`
}

/** Chains beside those above that the rules below fill. */
export function moreChains({ family, localhostNodePorts }: IptablesSettings): readonly string[] {
  return family === 'IPv4' && localhostNodePorts ? [FIREWALL] : []
}

/** Go before rules of Services. */
export function natHead({ masqueradeMark: mark, hasRandomFully }: IptablesSettings): string[] {
  return [
    `-A KUBE-POSTROUTING -m mark ! --mark ${mark}/${mark} -j RETURN`,
    // One that passes here again must not be masqueraded again.
    `-A KUBE-POSTROUTING -j MARK --xor-mark ${mark}`,
    `-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE${hasRandomFully ? ' --random-fully' : ''}`,
    `-A KUBE-MARK-MASQ -j MARK --or-mark ${mark}`,
  ]
}

const LAST = '-m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain"'

/** Goes after them: what is for no Service by its address may be for one by its port. */
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
    // Who routes 127.0.0.0/8 for node ports must keep neighbours from it (CVE-2020-8558).
    ...moreChains(settings).map(
      (chain) =>
        `-A ${chain} -m comment --comment "block incoming localnet connections" -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP`,
    ),
    // A packet that conntrack cannot place would reach a client with the endpoint's address, and be refused by it.
    ...(isTcpLiberal ? [] : ['-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP']),
    `-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark ${mark}/${mark} -j ACCEPT`,
    '-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
  ]
}
