/**
 * The part of a table that is there whatever Services there are: chains at netfilter's hooks, maps from what packets are sent to
 * to the chain that knows about it, and rules that lead from the ones to the others. Names are upstream's. Pure.
 */
import type { IpFamily } from '#model/services.ts'

import type { LocalDetector } from '../local-detector.ts'
import { ENDPOINT_MAPS } from './shared-chains.ts'

export interface TableSettings {
  readonly family: IpFamily
  readonly table: string
  /** `0x00004000`: what tells netfilter to masquerade a packet when it leaves. */
  readonly masqueradeMark: string
  /** Whether all that is sent to cluster IPs is masqueraded. */
  readonly masqueradeAll: boolean
  /** How to tell packets of pods of this node; undefined: nobody can. */
  readonly detector: LocalDetector | undefined
  /** Addresses at which node ports are served; undefined: all of the node. */
  readonly nodePortIps: readonly string[] | undefined
  /** Addresses that belong to Services even while none has them. */
  readonly serviceCidrs: readonly string[]
  /** Interfaces that are other clusters' on the same machine: their packets are not for us. */
  readonly others?: { readonly prefix: string; readonly own: string }
}

/** Name, what it declares, and what it leads to. */
type BaseChain = readonly [name: string, declared: string, jumps: readonly string[]]

const NEW = 'ct state new'

/** Refusing is only allowed where packets come in, go on or go out; dropping by source must see what was sent to. */
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

/** One that shows whether the table still works: a flush empties it too. */
export const CANARY = 'nat-prerouting'

/** `ip` and `ip6` are both the table's family and the word for its addresses in rules. */
export function familyWord(family: IpFamily): 'ip' | 'ip6' {
  return family === 'IPv4' ? 'ip' : 'ip6'
}

/** The types of sets and maps whose elements come from Services. */
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

/** Makes what is missing of the skeleton and fills it anew. Elements of sets and maps go; those of Services come after this. */
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
        // A pod that reaches itself through a Service would answer itself directly, and not know the answer.
        `ct status dnat ${ip} saddr . ${ip} daddr . meta l4proto . th dport @hairpin-connections masquerade fully-random`,
      ],
    ],
  ])
}

/** Who is not of this cluster may send to cluster IPs through any node; answers must come back through the same. */
function masquerade({ family, masqueradeMark, masqueradeAll, detector }: TableSettings): string[] {
  const toService = `${familyWord(family)} daddr @cluster-ips`
  const marks = `mark set mark or ${masqueradeMark}`
  if (masqueradeAll) return [`${toService} ${marks} comment "masquerade all clusterIP traffic"`]
  if (detector === undefined) return []
  return [
    `${toService} ${detector.nft.isNotLocal} ${marks} comment "masquerade clusterIP traffic from outside cluster"`,
  ]
}
