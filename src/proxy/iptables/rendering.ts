/**
 * What the routes of one Service are in iptables: rules in chains that all Services share, which say where packets enter, and
 * chains of its own. Names, comments and order are upstream's, rule by rule. Pure; lines are those of `iptables-restore`.
 */
import { destination, type Endpoint } from '../endpoints.ts'
import type { LocalDetector } from '../local-detector.ts'
import { reachable, type Route, usesCluster, usesLocal } from '../routing.ts'
import { holds, isExternal, type ServicePort } from '../service-port.ts'
import { chainName, endpointChainName } from './names.ts'

export interface RenderSettings {
  readonly masqueradeAll: boolean
  /** How to tell packets of pods of this node; undefined: nobody can. */
  readonly detector: LocalDetector | undefined
  /** Of this node and family; empty: not known. */
  readonly nodeIp: string
}

/** Rules of chains that all Services share, by table. */
export interface Portals {
  readonly nat: readonly string[]
  readonly filter: readonly string[]
}

export type Chains = ReadonlyMap<string, readonly string[]>

export function renderPortals(routes: readonly Route[]): Portals {
  const draft: { nat: string[]; filter: string[] } = { nat: [], filter: [] }
  for (const route of routes) {
    const ways = waysOf(route)
    enterByClusterIp(draft, ways)
    enterByAddresses(draft, ways)
    enterByNodePort(draft, ways)
    enterForHealthCheck(draft, ways.port)
  }
  return draft
}

/** `explains`: with comments in chains of Services and endpoints, which are left out where there are very many. */
export function renderChains(routes: readonly Route[], settings: RenderSettings, explains: boolean): Chains {
  const chains = new Map<string, string[]>()
  for (const route of routes) {
    const ways = waysOf(route)
    if (ways.hasEndpoints && isExternal(ways.port)) chains.set(ways.external, externalRules(ways, settings))
    if (ways.usesFirewall) chains.set(ways.firewall, firewallRules(ways, settings))
    policyChains(chains, ways, settings, explains)
    for (const endpoint of reachable(route))
      chains.set(endpointChainName(ways.port, endpoint), endpointRules(ways.port, endpoint, explains))
  }
  return chains
}

interface Ways {
  readonly route: Route
  readonly port: ServicePort
  /** Chains. */
  readonly cluster: string
  readonly local: string
  readonly external: string
  readonly firewall: string
  /** Anywhere; for what comes by cluster IP; for what comes by any other way. */
  readonly hasEndpoints: boolean
  readonly hasInternal: boolean
  readonly hasExternal: boolean
  readonly usesFirewall: boolean
}

function waysOf(route: Route): Ways {
  const { port, local, hasEndpoints } = route
  const isServed = (isLocal: boolean): boolean => hasEndpoints && !(isLocal && local.length === 0)
  return {
    route,
    port,
    cluster: chainName('cluster', port),
    local: chainName('local', port),
    external: chainName('external', port),
    firewall: chainName('firewall', port),
    hasEndpoints,
    hasInternal: isServed(port.isInternalLocal),
    hasExternal: isServed(port.isExternalLocal),
    usesFirewall: hasEndpoints && port.loadBalancerIps.length > 0 && port.sourceRanges.length > 0,
  }
}

interface Draft {
  readonly nat: string[]
  readonly filter: string[]
}

const MARK = '-j KUBE-MARK-MASQ'

/** Nothing but what names are made of reaches a rule, whoever it is that we listen to. */
function nameOf({ name }: ServicePort): string {
  return name.replaceAll(/[^A-Za-z0-9/._:-]/g, '_')
}

function comment(text: string): string {
  return `-m comment --comment "${text}"`
}

function matches({ protocol }: ServicePort): string {
  return `-m ${protocol} -p ${protocol}`
}

/** What becomes of packets that nobody here is there for: another node may have somebody. */
function refusal({ port, hasEndpoints }: Ways): { readonly why: string; readonly target: string } {
  return hasEndpoints
    ? { why: comment(`${nameOf(port)} has no local endpoints`), target: '-j DROP' }
    : { why: comment(`${nameOf(port)} has no endpoints`), target: '-j REJECT' }
}

function enterByClusterIp({ nat, filter }: Draft, ways: Ways): void {
  const { port, hasInternal, cluster, local } = ways
  const to = `${matches(port)} -d ${port.clusterIp} --dport ${port.port}`
  const { why, target } = refusal(ways)
  if (hasInternal)
    nat.push(
      `-A KUBE-SERVICES ${comment(`${nameOf(port)} cluster IP`)} ${to} -j ${port.isInternalLocal ? local : cluster}`,
    )
  else filter.push(`-A KUBE-SERVICES ${why} ${to} ${target}`)
}

function enterByAddresses(draft: Draft, ways: Ways): void {
  const { port, external, firewall, usesFirewall } = ways
  for (const ip of port.externalIps) enterByAddress(draft, ways, { ip, what: 'external IP', chain: external })
  for (const ip of port.loadBalancerIps) {
    enterByAddress(draft, ways, { ip, what: 'loadbalancer IP', chain: usesFirewall ? firewall : external })
    if (!usesFirewall) continue
    const why = comment(`${nameOf(port)} traffic not accepted by ${firewall}`)
    draft.filter.push(`-A KUBE-PROXY-FIREWALL ${why} ${matches(port)} -d ${ip} --dport ${port.port} -j DROP`)
  }
}

function enterByAddress(
  { nat, filter }: Draft,
  ways: Ways,
  { ip, what, chain }: { readonly ip: string; readonly what: string; readonly chain: string },
): void {
  const { port, hasEndpoints, hasExternal } = ways
  const to = `${matches(port)} -d ${ip} --dport ${port.port}`
  const { why, target } = refusal(ways)
  if (hasEndpoints) nat.push(`-A KUBE-SERVICES ${comment(`${nameOf(port)} ${what}`)} ${to} -j ${chain}`)
  if (!hasExternal) filter.push(`-A KUBE-EXTERNAL-SERVICES ${why} ${to} ${target}`)
}

function enterByNodePort({ nat, filter }: Draft, ways: Ways): void {
  const { port, hasEndpoints, hasExternal, external } = ways
  if (port.nodePort === 0) return
  const to = `${matches(port)} --dport ${port.nodePort}`
  const { why, target } = refusal(ways)
  if (hasEndpoints) nat.push(`-A KUBE-NODEPORTS ${comment(nameOf(port))} ${to} -j ${external}`)
  if (!hasExternal) filter.push(`-A KUBE-EXTERNAL-SERVICES ${why} -m addrtype --dst-type LOCAL ${to} ${target}`)
}

/** Whoever has no endpoints here must be able to say so. */
function enterForHealthCheck({ filter }: Draft, port: ServicePort): void {
  if (port.healthCheckNodePort === 0) return
  const why = comment(`${nameOf(port)} health check node port`)
  filter.push(`-A KUBE-NODEPORTS ${why} -m tcp -p tcp --dport ${port.healthCheckNodePort} -j ACCEPT`)
}

/** For what comes from outside: masqueraded if it may leave the node again, else with the address it came from. */
function externalRules(ways: Ways, { detector }: RenderSettings): string[] {
  const { port, cluster, local, external, hasExternal } = ways
  const add = (why: string, rest: string): string => `-A ${external} ${comment(why)} ${rest}`
  const name = nameOf(port)
  const onwards = hasExternal ? [`-A ${external} -j ${port.isExternalLocal ? local : cluster}`] : []
  if (!port.isExternalLocal) return [add(`masquerade traffic for ${name} external destinations`, MARK), ...onwards]
  const isHere = '-m addrtype --src-type LOCAL'
  return [
    // Pods of this node, and the node itself, are treated as if they had gone out and come back in.
    ...(detector === undefined
      ? []
      : [add(`pod traffic for ${name} external destinations`, `${detector.iptables.isLocal.join(' ')} -j ${cluster}`)]),
    add(`masquerade LOCAL traffic for ${name} external destinations`, `${isHere} ${MARK}`),
    add(`route LOCAL traffic for ${name} external destinations`, `${isHere} -j ${cluster}`),
    ...onwards,
  ]
}

function firewallRules({ port, external, firewall }: Ways, { nodeIp }: RenderSettings): string[] {
  const { sourceRanges, loadBalancerIps } = port
  // Where the node has the load balancer's address itself, it is the one packets of the node come from.
  const own = holds(sourceRanges, nodeIp) ? loadBalancerIps : []
  const why = comment(`${nameOf(port)} loadbalancer IP`)
  return [
    ...[...sourceRanges, ...own].map((source) => `-A ${firewall} ${why} -s ${source} -j ${external}`),
    `-A ${firewall} ${comment(`other traffic to ${nameOf(port)} will be dropped by KUBE-PROXY-FIREWALL`)}`,
  ]
}

function policyChains(chains: Map<string, string[]>, ways: Ways, settings: RenderSettings, explains: boolean): void {
  const { port, route } = ways
  const internal = port.isInternalLocal ? ways.local : ways.cluster
  for (const [chain, endpoints, isUsed] of [
    [ways.cluster, route.cluster, usesCluster(port)],
    [ways.local, route.local, usesLocal(port)],
  ] as const) {
    if (!isUsed || endpoints.length === 0) continue
    const entry = chain === internal && ways.hasInternal ? masqueradeRules(chain, port, settings) : []
    chains.set(chain, [...entry, ...choice(chain, port, endpoints, explains)])
  }
}

/** Who is not of this cluster may send to cluster IPs through any node; answers must come back through the same. */
function masqueradeRules(chain: string, port: ServicePort, { masqueradeAll, detector }: RenderSettings): string[] {
  const to = `${comment(`${nameOf(port)} cluster IP`)} ${matches(port)} -d ${port.clusterIp} --dport ${port.port}`
  if (masqueradeAll) return [`-A ${chain} ${to} ${MARK}`]
  return detector === undefined ? [] : [`-A ${chain} ${to} ${detector.iptables.isNotLocal.join(' ')} ${MARK}`]
}

function choice(chain: string, port: ServicePort, endpoints: readonly Endpoint[], explains: boolean): string[] {
  const ways = endpoints.map((endpoint) => ({
    to: endpointChainName(port, endpoint),
    why: explains ? ` ${comment(`${nameOf(port)} -> ${destination(endpoint)}`)}` : '',
  }))
  const seconds = port.affinitySeconds
  return [
    ...(seconds === 0
      ? []
      : ways.map(
          ({ to, why }) => `-A ${chain}${why} -m recent --name ${to} --rcheck --seconds ${seconds} --reap -j ${to}`,
        )),
    ...ways.map(({ to, why }, at) => {
      const left = ways.length - at
      const drawn = left === 1 ? '' : ` -m statistic --mode random --probability ${(1 / left).toFixed(10)}`
      return `-A ${chain}${why}${drawn} -j ${to}`
    }),
  ]
}

function endpointRules(port: ServicePort, endpoint: Endpoint, explains: boolean): string[] {
  const chain = endpointChainName(port, endpoint)
  const start = `-A ${chain}${explains ? ` ${comment(nameOf(port))}` : ''}`
  const remembers = port.affinitySeconds === 0 ? '' : ` -m recent --name ${chain} --set`
  return [
    // A pod that reaches itself through a Service would answer itself directly, and not know the answer.
    `${start} -s ${endpoint.ip} ${MARK}`,
    `${start}${remembers} ${matches(port)} -j DNAT --to-destination ${destination(endpoint)}`,
  ]
}
