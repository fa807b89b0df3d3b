/** How containers of a pod find names. Pure. */
import type { Pod } from '#apis/core/v1.ts'

import type { DNSConfig } from '../cri/sandbox-messages.ts'
import type { Note } from '../kubelet-notes.ts'
import type { PodFacts } from './pod-of-node.ts'

/** What `resolv.conf` says: name servers add up, the last line of search domains wins, so does each option. */
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
  /** What had to be left out. */
  readonly notes: readonly Note[]
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
  const { config, notes } = withinLimits({
    servers: unique([...base.servers, ...nameservers]),
    searches: unique([...base.searches, ...searches]),
    options: [...merged.values()],
  })
  const lacksServer = isOfCluster(pod) && facts.clusterDns.length === 0
  return { config, notes: lacksServer ? [missingServer(pod), ...notes] : notes }
}

/** Whether the cluster's server is what it asks. */
function isOfCluster({ spec: { dnsPolicy = 'ClusterFirst', hostNetwork = false } }: Pod): boolean {
  return dnsPolicy === 'ClusterFirstWithHostNet' || (dnsPolicy === 'ClusterFirst' && !hostNetwork)
}

function missingServer({ metadata: { name = '', namespace = '', uid = '' } }: Pod): Note {
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
  const notes: Note[] = []
  const say = (message: string): number => notes.push({ type: 'Warning', reason: 'DNSConfigForming', message })
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
  return { config: { servers: fewServers, searches: fewSearches, options }, notes }
}
