/** Computes the DNS configuration of a pod. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import type { DNSConfig } from '#apis/wire/cri.ts'

import type { EventSpec } from '../pod/events.ts'
import type { PodFacts } from '../pod/pod-of-node.ts'

/**
 * Parses `resolv.conf`: name servers accumulate, the last search line wins, and so does the last value of an option.
 */
export function parseResolvConf(text: string): DNSConfig {
  const servers: string[] = []
  let searches: string[] = []
  const options = new Map<string, string>()
  for (const line of text.split('\n')) {
    const [word = '', ...rest] = line.trim().split(/\s+/)
    if (word === 'nameserver' && rest[0] !== undefined) servers.push(rest[0])
    if (word === 'search') searches = rest.filter((domain) => domain !== '.').map((domain) => domain.replace(/\.$/, ''))
    if (word === 'options') for (const option of rest) options.set(nameOf(option), option)
  }
  return { servers, searches, options: [...options.values()] }
}

const nameOf = (option: string): string => option.split(':', 1)[0] ?? ''

const MAX_SERVERS = 3
const MAX_SEARCHES = 32
const MAX_SEARCH_CHARS = 2048
const MAX_DOMAIN_CHARS = 253

export interface PodDns {
  readonly config: DNSConfig
  /** Warnings about omitted entries. */
  readonly events: readonly EventSpec[]
}

export function dnsOf(
  pod: Pod,
  facts: Pick<PodFacts, 'clusterDns' | 'clusterDomain' | 'resolvConf' | 'addresses'>,
  ofNode: DNSConfig,
): PodDns {
  const base = baseOf(pod, facts, ofNode)
  const { nameservers = [], searches = [], options = [] } = pod.spec.dnsConfig ?? {}
  const merged = new Map(base.options.map((option) => [nameOf(option), option]))
  for (const { name = '', value = '' } of options) merged.set(name, value === '' ? name : `${name}:${value}`)
  const { config, events } = withinLimits({
    servers: unique([...base.servers, ...nameservers]),
    searches: unique([...base.searches, ...searches]),
    options: [...merged.values()],
  })
  const lacksServer = isOfCluster(pod) && facts.clusterDns.length === 0
  return { config, events: lacksServer ? [missingServer(pod), ...events] : events }
}

/** True if the pod uses the cluster DNS. */
function isOfCluster({ spec: { dnsPolicy = 'ClusterFirst', hostNetwork = false } }: Pod): boolean {
  return dnsPolicy === 'ClusterFirstWithHostNet' || (dnsPolicy === 'ClusterFirst' && !hostNetwork)
}

function missingServer({ metadata: { name = '', namespace = '', uid = '' } }: Pod): EventSpec {
  const what = 'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy'
  const message = `pod: "${name}_${namespace}(${uid})". ${what}. Falling back to "Default" policy.`
  return { type: 'Warning', reason: 'MissingClusterDNS', message }
}

const unique = (texts: readonly string[]): string[] => [...new Set(texts)]

function baseOf(
  pod: Pod,
  { clusterDns, clusterDomain, resolvConf, addresses }: Parameters<typeof dnsOf>[1],
  ofNode: DNSConfig,
): DNSConfig {
  if (pod.spec.dnsPolicy === 'None') return { servers: [], searches: [], options: [] }
  if (isOfCluster(pod) && clusterDns.length > 0) {
    const { namespace = '' } = pod.metadata
    const own = clusterDomain === '' ? [] : [`${namespace}.svc.${clusterDomain}`, `svc.${clusterDomain}`, clusterDomain]
    return { servers: [...clusterDns], searches: unique([...own, ...ofNode.searches]), options: ['ndots:5'] }
  }
  if (resolvConf !== '') return ofNode
  const servers = addresses.map((address) => (address.includes(':') ? '::1' : '127.0.0.1'))
  return { servers: servers.length > 0 ? servers : ['127.0.0.1'], searches: ['.'], options: [] }
}

function withinLimits({ servers, searches, options }: DNSConfig): PodDns {
  const events: EventSpec[] = []
  const say = (message: string): number => events.push({ type: 'Warning', reason: 'DNSConfigForming', message })
  const fewServers = servers.slice(0, MAX_SERVERS)
  if (fewServers.length < servers.length) {
    const line = `the applied nameserver line is: ${fewServers.join(' ')}`
    say(`Nameserver limits were exceeded, some nameservers have been omitted, ${line}`)
  }
  const fewSearches = searches.slice(0, MAX_SEARCHES).filter((domain) => domain.length <= MAX_DOMAIN_CHARS)
  while (fewSearches.join(' ').length > MAX_SEARCH_CHARS) fewSearches.pop()
  if (fewSearches.length < searches.length) {
    const line = `the applied search line is: ${fewSearches.join(' ')}`
    say(`Search Line limits were exceeded, some search paths have been omitted, ${line}`)
  }
  return { config: { servers: fewServers, searches: fewSearches, options }, events }
}
