/**
 * Writes the iptables rules of one Service: rules in shared chains, and chains that only this Service has. Names,
 * comments and order are upstream's. Pure; lines are in `iptables-restore` syntax.
 */
import { destination, type Endpoint } from '../endpoints.ts'
import type { LocalDetector } from '../local-detector.ts'
import { reachable, type Route, usesCluster, usesLocal } from '../routing.ts'
import { holds, isExternal, type ServicePort } from '../service-port.ts'
import { chainName, endpointChainName } from './names.ts'

export interface IptablesRenderSettings {
  readonly masqueradeAll: boolean
  /** Detects traffic of local pods; undefined: unknown. */
  readonly detector: LocalDetector | undefined
  /** Of this node and family; empty: unknown. */
  readonly nodeIp: string
}

/** Rules in shared chains, by table. */
export interface Portals {
  readonly nat: readonly string[]
  readonly filter: readonly string[]
}

export type Chains = ReadonlyMap<string, readonly string[]>

export function renderPortals(routes: readonly Route[]): Portals {
  const draft: { nat: string[]; filter: string[] } = { nat: [], filter: [] }
  for (const route of routes) {
    const routeChains = routeChainsOf(route)
    enterByClusterIp(draft, routeChains)
    enterByAddresses(draft, routeChains)
    enterByNodePort(draft, routeChains)
    enterForHealthCheck(draft, routeChains.port)
  }
  return draft
}

/** `explains` adds comments to the chains of Services and endpoints. */
export function renderChains(routes: readonly Route[], settings: IptablesRenderSettings, explains: boolean): Chains {
  const chains = new Map<string, string[]>()
  for (const route of routes) {
    const routeChains = routeChainsOf(route)
    if (routeChains.hasEndpoints && isExternal(routeChains.port))
      chains.set(routeChains.external, externalRules(routeChains, settings))
    if (routeChains.usesFirewall) chains.set(routeChains.firewall, firewallRules(routeChains, settings))
    policyChains(chains, routeChains, settings, explains)
    for (const endpoint of reachable(route))
      chains.set(endpointChainName(routeChains.port, endpoint), endpointRules(routeChains.port, endpoint, explains))
  }
  return chains
}

interface RouteChains {
  readonly route: Route
  readonly port: ServicePort
  /** Chain names. */
  readonly cluster: string
  readonly local: string
  readonly external: string
  readonly firewall: string
  /** In the cluster; for traffic to the cluster IP; for other traffic. */
  readonly hasEndpoints: boolean
  readonly hasInternal: boolean
  readonly hasExternal: boolean
  readonly usesFirewall: boolean
}

function routeChainsOf(route: Route): RouteChains {
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

interface RuleLines {
  readonly nat: string[]
  readonly filter: string[]
}

const MARK = '-j KUBE-MARK-MASQ'

/** Only valid name characters reach a rule, whatever the API server sends. */
function nameOf({ name }: ServicePort): string {
  return name.replaceAll(/[^A-Za-z0-9/._:-]/g, '_')
}

function comment(text: string): string {
  return `-m comment --comment "${text}"`
}

function matches({ protocol }: ServicePort): string {
  return `-m ${protocol} -p ${protocol}`
}

/** The verdict for traffic without endpoints here: drop if other nodes have some. */
function refusal({ port, hasEndpoints }: RouteChains): { readonly why: string; readonly target: string } {
  return hasEndpoints
    ? { why: comment(`${nameOf(port)} has no local endpoints`), target: '-j DROP' }
    : { why: comment(`${nameOf(port)} has no endpoints`), target: '-j REJECT' }
}

function enterByClusterIp({ nat, filter }: RuleLines, routeChains: RouteChains): void {
  const { port, hasInternal, cluster, local } = routeChains
  const to = `${matches(port)} -d ${port.clusterIp} --dport ${port.port}`
  const { why, target } = refusal(routeChains)
  if (hasInternal)
    nat.push(
      `-A KUBE-SERVICES ${comment(`${nameOf(port)} cluster IP`)} ${to} -j ${port.isInternalLocal ? local : cluster}`,
    )
  else filter.push(`-A KUBE-SERVICES ${why} ${to} ${target}`)
}

function enterByAddresses(draft: RuleLines, routeChains: RouteChains): void {
  const { port, external, firewall, usesFirewall } = routeChains
  for (const ip of port.externalIps) enterByAddress(draft, routeChains, { ip, what: 'external IP', chain: external })
  for (const ip of port.loadBalancerIps) {
    enterByAddress(draft, routeChains, { ip, what: 'loadbalancer IP', chain: usesFirewall ? firewall : external })
    if (!usesFirewall) continue
    const why = comment(`${nameOf(port)} traffic not accepted by ${firewall}`)
    draft.filter.push(`-A KUBE-PROXY-FIREWALL ${why} ${matches(port)} -d ${ip} --dport ${port.port} -j DROP`)
  }
}

function enterByAddress(
  { nat, filter }: RuleLines,
  routeChains: RouteChains,
  { ip, what, chain }: { readonly ip: string; readonly what: string; readonly chain: string },
): void {
  const { port, hasEndpoints, hasExternal } = routeChains
  const to = `${matches(port)} -d ${ip} --dport ${port.port}`
  const { why, target } = refusal(routeChains)
  if (hasEndpoints) nat.push(`-A KUBE-SERVICES ${comment(`${nameOf(port)} ${what}`)} ${to} -j ${chain}`)
  if (!hasExternal) filter.push(`-A KUBE-EXTERNAL-SERVICES ${why} ${to} ${target}`)
}

function enterByNodePort({ nat, filter }: RuleLines, routeChains: RouteChains): void {
  const { port, hasEndpoints, hasExternal, external } = routeChains
  if (port.nodePort === 0) return
  const to = `${matches(port)} --dport ${port.nodePort}`
  const { why, target } = refusal(routeChains)
  if (hasEndpoints) nat.push(`-A KUBE-NODEPORTS ${comment(nameOf(port))} ${to} -j ${external}`)
  if (!hasExternal) filter.push(`-A KUBE-EXTERNAL-SERVICES ${why} -m addrtype --dst-type LOCAL ${to} ${target}`)
}

/** Accepts health checks, also without local endpoints. */
function enterForHealthCheck({ filter }: RuleLines, port: ServicePort): void {
  if (port.healthCheckNodePort === 0) return
  const why = comment(`${nameOf(port)} health check node port`)
  filter.push(`-A KUBE-NODEPORTS ${why} -m tcp -p tcp --dport ${port.healthCheckNodePort} -j ACCEPT`)
}

/** External traffic: masqueraded if it may leave the node, otherwise with its source address. */
function externalRules(routeChains: RouteChains, { detector }: IptablesRenderSettings): string[] {
  const { port, cluster, local, external, hasExternal } = routeChains
  const add = (why: string, rest: string): string => `-A ${external} ${comment(why)} ${rest}`
  const name = nameOf(port)
  const onwards = hasExternal ? [`-A ${external} -j ${port.isExternalLocal ? local : cluster}`] : []
  if (!port.isExternalLocal) return [add(`masquerade traffic for ${name} external destinations`, MARK), ...onwards]
  const isHere = '-m addrtype --src-type LOCAL'
  return [
    // Local pods and the node itself may use all endpoints.
    ...(detector === undefined
      ? []
      : [add(`pod traffic for ${name} external destinations`, `${detector.iptables.isLocal.join(' ')} -j ${cluster}`)]),
    add(`masquerade LOCAL traffic for ${name} external destinations`, `${isHere} ${MARK}`),
    add(`route LOCAL traffic for ${name} external destinations`, `${isHere} -j ${cluster}`),
    ...onwards,
  ]
}

function firewallRules({ port, external, firewall }: RouteChains, { nodeIp }: IptablesRenderSettings): string[] {
  const { sourceRanges, loadBalancerIps } = port
  // If the node has the load balancer's address, its own traffic comes from it.
  const own = holds(sourceRanges, nodeIp) ? loadBalancerIps : []
  const why = comment(`${nameOf(port)} loadbalancer IP`)
  return [
    ...[...sourceRanges, ...own].map((source) => `-A ${firewall} ${why} -s ${source} -j ${external}`),
    `-A ${firewall} ${comment(`other traffic to ${nameOf(port)} will be dropped by KUBE-PROXY-FIREWALL`)}`,
  ]
}

function policyChains(
  chains: Map<string, string[]>,
  routeChains: RouteChains,
  settings: IptablesRenderSettings,
  explains: boolean,
): void {
  const { port, route } = routeChains
  const internal = port.isInternalLocal ? routeChains.local : routeChains.cluster
  for (const [chain, endpoints, isUsed] of [
    [routeChains.cluster, route.cluster, usesCluster(port)],
    [routeChains.local, route.local, usesLocal(port)],
  ] as const) {
    if (!isUsed || endpoints.length === 0) continue
    const entry = chain === internal && routeChains.hasInternal ? masqueradeRules(chain, port, settings) : []
    chains.set(chain, [...entry, ...choice(chain, port, endpoints, explains)])
  }
}

/** Clients outside of the cluster may use cluster IPs through any node; masquerading brings replies back. */
function masqueradeRules(
  chain: string,
  port: ServicePort,
  { masqueradeAll, detector }: IptablesRenderSettings,
): string[] {
  const to = `${comment(`${nameOf(port)} cluster IP`)} ${matches(port)} -d ${port.clusterIp} --dport ${port.port}`
  if (masqueradeAll) return [`-A ${chain} ${to} ${MARK}`]
  return detector === undefined ? [] : [`-A ${chain} ${to} ${detector.iptables.isNotLocal.join(' ')} ${MARK}`]
}

function choice(chain: string, port: ServicePort, endpoints: readonly Endpoint[], explains: boolean): string[] {
  const routeChains = endpoints.map((endpoint) => ({
    to: endpointChainName(port, endpoint),
    why: explains ? ` ${comment(`${nameOf(port)} -> ${destination(endpoint)}`)}` : '',
  }))
  const seconds = port.affinitySeconds
  return [
    ...(seconds === 0
      ? []
      : routeChains.map(
          ({ to, why }) => `-A ${chain}${why} -m recent --name ${to} --rcheck --seconds ${seconds} --reap -j ${to}`,
        )),
    ...routeChains.map(({ to, why }, at) => {
      const left = routeChains.length - at
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
    // Hairpin: a pod that reaches itself through a Service must see another source address.
    `${start} -s ${endpoint.ip} ${MARK}`,
    `${start}${remembers} ${matches(port)} -j DNAT --to-destination ${destination(endpoint)}`,
  ]
}
