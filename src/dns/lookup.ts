/**
 * Answers queries for cluster names by the Kubernetes DNS specification 1.1. Where the specification is silent, answers
 * are CoreDNS': pod names, endpoints of a Service with a cluster IP, SRV of all ports. Pure.
 */
import { parseIp } from '#lib/net/cidr.ts'

import { type Directory, type NamedPort, serviceKey, type ServiceNames } from './directory.ts'
import type { RecordData, ResourceRecord } from './message.ts'
import { addressOf, REVERSE_ZONES } from './reverse.ts'
import { TYPE } from './wire.ts'

export interface Question {
  /** In lower case. */
  readonly name: string
  readonly type: number
}

export type Outcome =
  /** Not a cluster name: forward the query. */
  | { readonly is: 'elsewhere' }
  | {
      readonly is: 'records'
      readonly answers: readonly ResourceRecord[]
      readonly additional: readonly ResourceRecord[]
    }
  /** NODATA: the name exists without this type. */
  | { readonly is: 'no data'; readonly zone: string }
  | { readonly is: 'no name'; readonly zone: string }
  | { readonly is: 'refused' }
  /** A CNAME; `record` contains it. */
  | { readonly is: 'alias'; readonly record: ResourceRecord; readonly target: string; readonly zone: string }

export interface Names {
  readonly directory: Directory
  /** `cluster.local`. */
  readonly domain: string
  readonly ttl: number
  /** Returns the index of the first address, for round robin. */
  readonly rotation: (many: number) => number
}

const VERSION = '1.1.0'
const VERSION_TTL = 28_800
/** The Service of the DNS server. */
const OWN_SERVICE = serviceKey('kube-dns', 'kube-system')
const ELSEWHERE: Outcome = { is: 'elsewhere' }

export function lookUp(names: Names, question: Question): Outcome {
  const { name, type } = question
  if (isWithin(name, names.domain)) return inDomain(names, question)
  const zone = REVERSE_ZONES.find((known) => isWithin(name, known))
  if (zone === undefined) return ELSEWHERE
  if (name === zone) return type === TYPE.AXFR || type === TYPE.IXFR ? { is: 'refused' } : ELSEWHERE
  // The upstream may know other reverse names.
  return type === TYPE.PTR ? (namesAt(names, name) ?? ELSEWHERE) : ELSEWHERE
}

export const isWithin = (name: string, zone: string): boolean => name === zone || name.endsWith(`.${zone}`)

/** One address, or one of its ports, with the name of the endpoint. */
interface FoundAddress {
  readonly address: string
  readonly port: number | undefined
  readonly owner: string
}

/** The data of a name. Undefined: NXDOMAIN. */
type Content = { readonly found: readonly FoundAddress[] } | { readonly alias: string } | undefined

const NOTHING: Content = { found: [] }

function inDomain(names: Names, question: Question): Outcome {
  const { domain: zone } = names
  const { name, type } = question
  if (type === TYPE.AXFR || type === TYPE.IXFR) return { is: 'refused' }
  const noData: Outcome = { is: 'no data', zone }
  if (name === zone) return atApex(names, type) ?? noData
  const below = name.slice(0, -zone.length - 1)
  if (below === 'dns-version' && type === TYPE.TXT)
    return records([{ name, type, ttl: VERSION_TTL, data: { text: VERSION } }])
  const content = below === 'ns.dns' ? ownAddresses(names) : contentOf(names, below)
  if (content === undefined) return { is: 'no name', zone }
  if ('alias' in content) return aliasOf(names, question, content.alias)
  if (type === TYPE.SRV) return services(names, name, content.found) ?? noData
  const answers = addresses(names, question, content.found)
  return answers.length === 0 ? noData : records(answers)
}

function records(answers: readonly ResourceRecord[], additional: readonly ResourceRecord[] = []): Outcome {
  return { is: 'records', answers, additional }
}

function atApex(names: Names, type: number): Outcome | undefined {
  if (type !== TYPE.NS) return undefined
  const { domain, ttl } = names
  const own = ownAddresses(names)?.found ?? []
  const host = own[0]?.owner
  if (host === undefined) return undefined
  const extra = own.map(({ address }) => addressRecord(host, address, ttl))
  return records([{ name: domain, type, ttl, data: { target: host } }], extra)
}

function ownAddresses({ directory, domain }: Names): { readonly found: readonly FoundAddress[] } {
  const owner = `${OWN_SERVICE}.svc.${domain}`
  const own = directory.service(OWN_SERVICE)?.addresses ?? []
  return { found: own.map((address) => ({ address, port: undefined, owner })) }
}

function contentOf(names: Names, below: string): Content {
  const labels = below.split('.')
  const kind = labels.pop()
  if (kind !== 'svc' && kind !== 'pod') return undefined
  const namespace = labels.pop()
  if (namespace === undefined) return NOTHING
  if (!names.directory.hasNamespace(namespace)) return undefined
  const name = labels.pop()
  if (name === undefined) return NOTHING
  if (kind === 'pod') return labels.length === 0 ? podAt(names, name, namespace) : undefined
  if (labels.length > 2) return undefined
  const key = serviceKey(name, namespace)
  const service = names.directory.service(key)
  return service && ofService(names, { key, service, labels })
}

interface ServiceQuestion {
  readonly key: string
  readonly service: ServiceNames
  /** The labels before the Service: none, an endpoint, or port and protocol. */
  readonly labels: readonly string[]
}

function ofService(names: Names, { key, service, labels }: ServiceQuestion): Content {
  if (service.alias !== undefined) return labels.length === 0 ? { alias: service.alias } : undefined
  const [port = '', protocol = ''] = labels.length === 2 ? labels.map((label) => label.replace(/^_/, '')) : []
  const endpoint = labels.length === 1 ? labels[0] : undefined
  const isRequested = (one: NamedPort): boolean =>
    (port === '' || one.name.toLowerCase() === port) && (protocol === '' || one.protocol === protocol)
  const owner = `${key}.svc.${names.domain}`
  const found =
    service.isHeadless || endpoint !== undefined
      ? ofEndpoints(names, { key, owner, endpoint, isRequested })
      : service.ports
          .filter(isRequested)
          .flatMap((one) => service.addresses.map((address) => ({ address, port: one.port, owner })))
  return found.length === 0 ? undefined : { found }
}

interface EndpointQuestion {
  readonly key: string
  readonly owner: string
  readonly endpoint: string | undefined
  readonly isRequested: (port: NamedPort) => boolean
}

function ofEndpoints({ directory }: Names, { key, owner, endpoint, isRequested }: EndpointQuestion): FoundAddress[] {
  const found: FoundAddress[] = []
  for (const { ports, endpoints } of directory.slicesOf(key)) {
    const requested = ports.filter(isRequested)
    if (requested.length === 0) continue
    for (const { address, host } of endpoints) {
      if (endpoint !== undefined && host !== endpoint) continue
      for (const { port } of requested) found.push({ address, port, owner: `${host}.${owner}` })
    }
  }
  return found
}

/** Any address in an existing namespace resolves, as with CoreDNS' `pods insecure`, the common default. */
function podAt({ domain }: Names, name: string, namespace: string): Content {
  const isV4 = /^\d+(?:-\d+){3}$/.test(name)
  const address = name.replaceAll('-', isV4 ? '.' : ':')
  if (parseIp(address) === undefined) return undefined
  return { found: [{ address, port: undefined, owner: `${name}.${namespace}.pod.${domain}` }] }
}

function aliasOf({ ttl, domain: zone }: Names, { name, type }: Question, target: string): Outcome {
  const record: ResourceRecord = { name, type: TYPE.CNAME, ttl, data: { target } }
  if (type === TYPE.CNAME) return records([record])
  // A self-referencing alias has no data; SRV of external names is not ours.
  if (target === name || (type !== TYPE.A && type !== TYPE.AAAA && type !== TYPE.TXT)) return { is: 'no data', zone }
  return { is: 'alias', record, target, zone }
}

/** Without duplicates, rotated. */
function addresses(names: Names, { name, type }: Question, found: readonly FoundAddress[]): ResourceRecord[] {
  if (type !== TYPE.A && type !== TYPE.AAAA) return []
  const wanted: string[] = []
  const seen = new Set<string>()
  for (const { address } of found) {
    if (seen.has(address) || typeOf(address) !== type) continue
    seen.add(address)
    wanted.push(address)
  }
  return rotated(names, wanted).map((address) => addressRecord(name, address, names.ttl))
}

function rotated<T>({ rotation }: Names, items: readonly T[]): readonly T[] {
  if (items.length < 2) return items
  const first = rotation(items.length)
  return [...items.slice(first), ...items.slice(0, first)]
}

const typeOf = (address: string): number => (address.includes(':') ? TYPE.AAAA : TYPE.A)

function addressRecord(name: string, address: string, ttl: number): ResourceRecord {
  return { name, type: typeOf(address), ttl, data: { address } }
}

/** Equal weights, with the addresses of the targets. */
function services(names: Names, name: string, found: readonly FoundAddress[]): Outcome | undefined {
  const { ttl } = names
  const weight = Math.max(1, Math.floor(100 / Math.max(1, found.length)))
  const answers = new Map<string, ResourceRecord>()
  const additional = new Map<string, ResourceRecord>()
  for (const { address, port, owner } of found) {
    if (port === undefined) continue
    const data: RecordData = { priority: 0, weight, port, host: owner }
    answers.set(`${owner} ${port}`, { name, type: TYPE.SRV, ttl, data })
    additional.set(`${owner} ${address}`, addressRecord(owner, address, ttl))
  }
  if (answers.size === 0) return undefined
  return records(rotated(names, [...answers.values()]), [...additional.values()])
}

/** Services with the address, else endpoints. */
function namesAt({ directory, domain, ttl }: Names, name: string): Outcome | undefined {
  const address = addressOf(name)
  if (address === undefined) return undefined
  const service = directory.serviceAt(address)
  const targets =
    service === undefined
      ? directory
          .slicesAt(address)
          .flatMap(({ service: key, endpoints }) =>
            endpoints.filter((one) => one.address === address).map(({ host }) => `${host}.${key}.svc.${domain}`),
          )
      : [`${service}.svc.${domain}`]
  if (targets.length === 0) return undefined
  return records([...new Set(targets)].map((target) => ({ name, type: TYPE.PTR, ttl, data: { target } })))
}
