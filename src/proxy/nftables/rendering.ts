/**
 * Writes the nftables objects of one Service: elements of sets and maps, and separate chains if it has session affinity
 * or external addresses. Pure; texts are in nft syntax.
 */
import { formatCidr, parseCidr } from '#lib/net/cidr.ts'
import type { IpFamily } from '#model/services.ts'

import { destination, type Endpoint } from '../endpoints.ts'
import { reachable, type Route, usesCluster, usesLocal } from '../routing.ts'
import { holds, isExternal, type ServicePort, withoutOverlaps } from '../service-port.ts'
import { affinitySetName, chainName, endpointChainName } from './names.ts'
import { sharedChain } from './shared-chains.ts'
import { familyWord, type TableSettings } from './skeleton.ts'

export interface Rendering {
  /** `<set> <key>` or `<map> <key> : <value>`, without duplicates. */
  readonly elements: readonly string[]
  /** Its own chains with their rules. */
  readonly chains: ReadonlyMap<string, readonly string[]>
  /** The shared chains that it uses. */
  readonly shared: readonly string[]
  /** Its own sets with their declarations. */
  readonly sets: ReadonlyMap<string, string>
}

export type RenderSettings = Pick<TableSettings, 'family' | 'masqueradeMark' | 'detector'> & {
  /** Of this node and family. */
  readonly nodeIp: string
}

const NO_CHAINS: ReadonlyMap<string, readonly string[]> = new Map()
const NO_SETS: ReadonlyMap<string, string> = new Map()
const NO_NAMES: readonly string[] = []

export function renderRoutes(routes: readonly Route[], settings: RenderSettings): Rendering {
  const draft = new RenderingDraft()
  for (const route of routes) renderRoute(draft, route, settings)
  return draft.finished()
}

class RenderingDraft {
  readonly elements = new Set<string>()
  readonly chains = new Map<string, string[]>()
  readonly shared = new Set<string>()
  readonly sets = new Map<string, string>()

  finished(): Rendering {
    return {
      elements: [...this.elements],
      chains: this.chains.size === 0 ? NO_CHAINS : this.chains,
      shared: this.shared.size === 0 ? NO_NAMES : [...this.shared],
      sets: this.sets.size === 0 ? NO_SETS : this.sets,
    }
  }
}

interface Verdicts {
  /** The chains for traffic to the cluster IP and for other traffic; undefined: none. */
  readonly internal: string | undefined
  readonly external: string | undefined
  /** The verdict for traffic without a chain; undefined: none. */
  readonly internalRefusal: string | undefined
  readonly externalRefusal: string | undefined
}

function renderRoute(draft: RenderingDraft, route: Route, settings: RenderSettings): void {
  const { port } = route
  for (const { ip, port: number, isLocal } of reachable(route)) {
    if (isLocal) draft.elements.add(`hairpin-connections ${ip} . ${ip} . ${port.protocol} . ${number}`)
  }
  const isOwn = port.affinitySeconds > 0 || isExternal(port)
  const verdicts = verdictsOf(route, isOwn ? ownChains(draft, route, settings) : shareChain(draft, route))
  renderFrontends(draft, port, verdicts)
  renderFirewall(draft, port, settings)
}

function verdictsOf(
  { port, local, hasEndpoints }: Route,
  { internal, external }: Pick<Verdicts, 'internal' | 'external'>,
): Verdicts {
  if (!hasEndpoints) {
    const refusal = 'goto reject-chain'
    return { internal: undefined, external: undefined, internalRefusal: refusal, externalRefusal: refusal }
  }
  // Other nodes have endpoints: this one must not reject.
  const isMissing = (isLocal: boolean): boolean => isLocal && local.length === 0
  const noInternal = isMissing(port.isInternalLocal)
  return {
    internal: noInternal ? undefined : internal,
    // Local clients bypass the policy.
    external,
    internalRefusal: noInternal ? 'drop' : undefined,
    externalRefusal: isMissing(port.isExternalLocal) ? 'drop' : undefined,
  }
}

function renderFrontends(draft: RenderingDraft, port: ServicePort, verdicts: Verdicts): void {
  const { protocol, clusterIp, port: number, nodePort, externalIps, loadBalancerIps } = port
  const { internal, external, internalRefusal, externalRefusal } = verdicts
  const add = (map: string, key: string, verdict: string | undefined): void => {
    if (verdict !== undefined) draft.elements.add(`${map} ${key} : ${verdict}`)
  }
  draft.elements.add(`cluster-ips ${clusterIp}`)
  const cluster = `${clusterIp} . ${protocol} . ${number}`
  add('service-ips', cluster, internal)
  add('no-endpoint-services', cluster, internalRefusal)
  for (const ip of new Set([...externalIps, ...loadBalancerIps])) {
    const key = `${ip} . ${protocol} . ${number}`
    add('service-ips', key, external)
    add('no-endpoint-services', key, externalRefusal)
  }
  if (nodePort === 0) return
  add('service-nodeports', `${protocol} . ${nodePort}`, external)
  add('no-endpoint-nodeports', `${protocol} . ${nodePort}`, externalRefusal)
}

/** With only a cluster IP, destination address and port identify the Service. */
function shareChain(draft: RenderingDraft, { port, cluster, local }: Route): Pick<Verdicts, 'internal' | 'external'> {
  const endpoints = port.isInternalLocal ? local : cluster
  if (endpoints.length === 0) return { internal: undefined, external: undefined }
  const chain = sharedChain(endpoints.length)
  draft.shared.add(chain)
  for (const [at, { ip, port: number }] of endpoints.entries())
    draft.elements.add(`endpoints-${port.protocol} ${port.clusterIp} . ${port.port} . ${at} : ${ip} . ${number}`)
  return { internal: `goto ${chain}`, external: undefined }
}

function ownChains(
  draft: RenderingDraft,
  route: Route,
  settings: RenderSettings,
): Pick<Verdicts, 'internal' | 'external'> {
  const { port, cluster, local, hasEndpoints } = route
  const names = { cluster: chainName('service', port), local: chainName('local', port) }
  if (cluster.length > 0 && usesCluster(port))
    draft.chains.set(names.cluster, choice(draft, port, cluster, settings.family))
  if (local.length > 0 && usesLocal(port)) draft.chains.set(names.local, choice(draft, port, local, settings.family))
  const isInternal = (port.isInternalLocal ? local : cluster).length > 0
  const internal = isInternal ? `goto ${port.isInternalLocal ? names.local : names.cluster}` : undefined
  if (!hasEndpoints || !isExternal(port)) return { internal, external: undefined }
  const external = chainName('external', port)
  draft.chains.set(external, externalRules(route, names, settings))
  return { internal, external: `goto ${external}` }
}

/** External traffic: masqueraded if it may leave the node, otherwise with its source address. */
function externalRules(
  { port, cluster, local }: Route,
  names: { readonly cluster: string; readonly local: string },
  { masqueradeMark, detector }: RenderSettings,
): string[] {
  const marks = `mark set mark or ${masqueradeMark}`
  const toCluster = cluster.length === 0 ? [] : [`goto ${names.cluster}`]
  if (!port.isExternalLocal) return [marks, ...toCluster]
  return [
    // Local pods and the node itself may use all endpoints.
    ...(detector === undefined ? [] : toCluster.map((go) => `${detector.nft.isLocal} ${go}`)),
    `fib saddr type local ${marks}`,
    ...toCluster.map((go) => `fib saddr type local ${go}`),
    ...(local.length === 0 ? [] : [`goto ${names.local}`]),
  ]
}

function choice(draft: RenderingDraft, port: ServicePort, endpoints: readonly Endpoint[], family: IpFamily): string[] {
  const ip = familyWord(family)
  const drawn = `numgen random mod ${endpoints.length}`
  if (port.affinitySeconds === 0) {
    const places = endpoints.map((one, at) => `${at} : ${one.ip} . ${one.port}`)
    return [`meta l4proto ${port.protocol} dnat ${ip} to ${drawn} map { ${places.join(', ')} }`]
  }
  const chains = endpoints.map((one) => stickyChain(draft, port, one, family))
  return [
    ...chains.map(({ name, set }) => `${ip} saddr @${set} goto ${name}`),
    `${drawn} vmap { ${chains.map(({ name }, at) => `${at} : goto ${name}`).join(', ')} }`,
  ]
}

/** Remembers clients for the affinity timeout, counted from their last connection. */
function stickyChain(
  draft: RenderingDraft,
  port: ServicePort,
  endpoint: Endpoint,
  family: IpFamily,
): { readonly name: string; readonly set: string } {
  const ip = familyWord(family)
  const [name, set] = [endpointChainName(port, endpoint), affinitySetName(port, endpoint)]
  const type = family === 'IPv4' ? 'ipv4_addr' : 'ipv6_addr'
  draft.sets.set(set, `type ${type} ; flags dynamic,timeout ; timeout ${port.affinitySeconds}s`)
  draft.chains.set(name, [
    `update @${set} { ${ip} saddr }`,
    `meta l4proto ${port.protocol} dnat to ${destination(endpoint)}`,
  ])
  return { name, set }
}

function renderFirewall(draft: RenderingDraft, port: ServicePort, { family, nodeIp }: RenderSettings): void {
  const { protocol, port: number, loadBalancerIps, sourceRanges } = port
  if (loadBalancerIps.length === 0 || sourceRanges.length === 0) return
  const chain = chainName('firewall', port)
  // If the node has the load balancer's address, its own traffic comes from it.
  const own = holds(sourceRanges, nodeIp) ? loadBalancerIps.map((ip) => `${ip}/${family === 'IPv4' ? 32 : 128}`) : []
  const allowed = withoutOverlaps([...sourceRanges, ...own].flatMap((text) => parseCidr(text) ?? [])).map(formatCidr)
  draft.chains.set(chain, [`${familyWord(family)} saddr != { ${allowed.join(', ')} } drop`])
  for (const ip of loadBalancerIps) draft.elements.add(`firewall-ips ${ip} . ${protocol} . ${number} : goto ${chain}`)
}
