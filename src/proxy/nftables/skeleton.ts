/**
 * The fixed part of the nftables table: base chains, maps from destinations to chains, and the rules that connect them.
 * Names are upstream's. Pure.
 */
import type { IpFamily } from '#model/services.ts'

import type { LocalDetector } from '../local-detector.ts'
import { ENDPOINT_MAPS } from './shared-chains.ts'

export interface TableSettings {
  readonly family: IpFamily
  readonly table: string
  /** `0x00004000`: the packet mark for masquerading. */
  readonly masqueradeMark: string
  /** Whether all traffic to cluster IPs is masqueraded. */
  readonly masqueradeAll: boolean
  /** Detects traffic of local pods; undefined: unknown. */
  readonly detector: LocalDetector | undefined
  /** Node port addresses; undefined: all of the node. */
  readonly nodePortIps: readonly string[] | undefined
  /** Service CIDRs, including unassigned addresses. */
  readonly serviceCidrs: readonly string[]
  /** Interfaces of other clusters on this machine, whose packets are ignored. */
  readonly others?: { readonly prefix: string; readonly own: string }
}

/** Name, declaration and jumps. */
type BaseChain = readonly [name: string, declared: string, jumps: readonly string[]]

const NEW = 'ct state new'

/** Reject is only allowed in input, forward and output; dropping by source needs the original destination. */
const BASE_CHAINS: readonly BaseChain[] = [
  ['filter-prerouting-pre-dnat', 'type filter hook prerouting priority -110', [`${NEW} jump firewall-check`]],
  ['filter-output-pre-dnat', 'type filter hook output priority -110', [`${NEW} jump firewall-check`]],
  [
    'filter-input',
    'type filter hook input priority 0',
    [`${NEW} jump nodeport-endpoints-check`, `${NEW} jump service-endpoints-check`],
  ],
  [
    'filter-forward',
    'type filter hook forward priority 0',
    [`${NEW} jump service-endpoints-check`, `${NEW} jump cluster-ips-check`],
  ],
  [
    'filter-output',
    'type filter hook output priority 0',
    [`${NEW} jump service-endpoints-check`, `${NEW} jump cluster-ips-check`],
  ],
  ['nat-prerouting', 'type nat hook prerouting priority -100', ['jump services']],
  ['nat-output', 'type nat hook output priority -100', ['jump services']],
  ['nat-postrouting', 'type nat hook postrouting priority 100', ['jump masquerading']],
]

/** Shows whether the table is intact: a flush empties it too. */
export const CANARY = 'nat-prerouting'

/** `ip` and `ip6` are both the table's family and the address keyword in rules. */
export function familyWord(family: IpFamily): 'ip' | 'ip6' {
  return family === 'IPv4' ? 'ip' : 'ip6'
}

/** The types of sets and maps with elements of Services. */
function containers(family: IpFamily): ReadonlyMap<string, string> {
  const [ip, address] = family === 'IPv4' ? ['ip', 'ipv4_addr'] : ['ip6', 'ipv6_addr']
  const frontend = `type ${address} . inet_proto . inet_service : verdict`
  const nodePort = 'type inet_proto . inet_service : verdict'
  return new Map([
    ['cluster-ips', `set|type ${address}`],
    ['hairpin-connections', `set|type ${address} . ${address} . inet_proto . inet_service`],
    ['service-ips', `map|${frontend}`],
    ['service-nodeports', `map|${nodePort}`],
    ['no-endpoint-services', `map|${frontend}`],
    ['no-endpoint-nodeports', `map|${nodePort}`],
    ['firewall-ips', `map|${frontend}`],
    ...ENDPOINT_MAPS.map(({ protocol, name }): [string, string] => [
      name,
      `map|typeof ${ip} daddr . ${protocol} dport . numgen random mod 65536 : ${ip} daddr . ${protocol} dport`,
    ]),
  ])
}

/** Creates missing parts and refills the fixed rules. Clears sets and maps; Services refill them afterwards. */
export function skeleton(settings: TableSettings): string[] {
  const { family, table, nodePortIps } = settings
  const of = `${familyWord(family)} ${table}`
  const rules = chainRules(settings)
  const chains = [...rules.keys()].filter((name) => !BASE_CHAINS.some(([base]) => base === name))
  return [
    `add table ${of} { comment "rules for kube-proxy" ; }`,
    ...BASE_CHAINS.map(([name, declared]) => `add chain ${of} ${name} { ${declared} ; }`),
    ...chains.map((name) => `add chain ${of} ${name}`),
    ...[...rules.keys()].map((name) => `flush chain ${of} ${name}`),
    ...[...containers(family)].flatMap(([name, declared]) => {
      const [kind = '', type = ''] = declared.split('|')
      return [`add ${kind} ${of} ${name} { ${type} ; }`, `flush ${kind} ${of} ${name}`]
    }),
    ...nodePortSet(of, settings),
    ...[...rules].flatMap(([name, lines]) => lines.map((line) => `add rule ${of} ${name} ${line}`)),
    ...(nodePortIps === undefined
      ? [`add set ${of} nodeport-ips { ${addressType(family)} ; }`, `delete set ${of} nodeport-ips`]
      : []),
  ]
}

function nodePortSet(of: string, { family, nodePortIps }: TableSettings): string[] {
  if (nodePortIps === undefined) return []
  return [
    `add set ${of} nodeport-ips { ${addressType(family)} ; }`,
    `flush set ${of} nodeport-ips`,
    ...(nodePortIps.length === 0 ? [] : [`add element ${of} nodeport-ips { ${nodePortIps.join(', ')} }`]),
  ]
}

function addressType(family: IpFamily): string {
  return family === 'IPv4' ? 'type ipv4_addr' : 'type ipv6_addr'
}

function chainRules(settings: TableSettings): Map<string, readonly string[]> {
  const { family, masqueradeMark: mark, nodePortIps, serviceCidrs, others } = settings
  const ip = familyWord(family)
  const frontend = `${ip} daddr . meta l4proto . th dport`
  const noLoopback = family === 'IPv4' ? 'ip daddr != 127.0.0.0/8' : 'ip6 daddr != ::1'
  const toNode = nodePortIps === undefined ? noLoopback : `${ip} daddr @nodeport-ips`
  const isNode = nodePortIps === undefined ? `fib daddr type local ${noLoopback}` : toNode
  const foreign = others === undefined ? [] : [`iifname "${others.prefix}*" iifname != "${others.own}" return`]
  return new Map<string, readonly string[]>([
    ...BASE_CHAINS.map(([name, , jumps]): [string, readonly string[]] => [
      name,
      name === 'nat-postrouting' ? jumps : [...foreign, ...jumps],
    ]),
    [
      'services',
      [
        ...masquerade(settings),
        `${frontend} vmap @service-ips`,
        `${isNode} meta l4proto . th dport vmap @service-nodeports`,
      ],
    ],
    ['service-endpoints-check', [`${frontend} vmap @no-endpoint-services`]],
    ['nodeport-endpoints-check', [`${toNode} meta l4proto . th dport vmap @no-endpoint-nodeports`]],
    ['reject-chain', ['reject']],
    [
      'cluster-ips-check',
      [
        `${ip} daddr @cluster-ips reject comment "Reject traffic to invalid ports of ClusterIPs"`,
        ...(serviceCidrs.length === 0
          ? []
          : [`${ip} daddr { ${serviceCidrs.join(', ')} } drop comment "Drop traffic to unallocated ClusterIPs"`]),
      ],
    ],
    ['firewall-check', [`${frontend} vmap @firewall-ips`]],
    [
      'masquerading',
      [
        `mark and ${mark} != 0 mark set mark xor ${mark} masquerade fully-random`,
        // Hairpin: a pod that reaches itself through a Service must see another source address.
        `ct status dnat ${ip} saddr . ${ip} daddr . meta l4proto . th dport @hairpin-connections masquerade fully-random`,
      ],
    ],
  ])
}

/** Clients outside of the cluster may use cluster IPs through any node; masquerading brings replies back. */
function masquerade({ family, masqueradeMark, masqueradeAll, detector }: TableSettings): string[] {
  const toService = `${familyWord(family)} daddr @cluster-ips`
  const marks = `mark set mark or ${masqueradeMark}`
  if (masqueradeAll) return [`${toService} ${marks} comment "masquerade all clusterIP traffic"`]
  if (detector === undefined) return []
  return [
    `${toService} ${detector.nft.isNotLocal} ${marks} comment "masquerade clusterIP traffic from outside cluster"`,
  ]
}
