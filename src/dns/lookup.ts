/**
 * What a cluster answers to a question about its names: the Kubernetes DNS specification 1.1, and where it is silent (names of
 * pods, of endpoints of a Service with an address, SRV of all ports) what CoreDNS does, whose users these are. Pure.
 */
import { parseIp } from '#lib/cidr.ts'

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
  /** Not a name of the cluster: others know. */
  | { readonly is: 'elsewhere' }
  | {
      readonly is: 'records'
      readonly answers: readonly ResourceRecord[]
      readonly additional: readonly ResourceRecord[]
    }
  /** The name is there, what was asked of it is not. */
  | { readonly is: 'no data'; readonly zone: string }
  | { readonly is: 'no name'; readonly zone: string }
  | { readonly is: 'refused' }
  /** Another name says it; `record` says which. */
  | { readonly is: 'alias'; readonly record: ResourceRecord; readonly target: string; readonly zone: string }

export interface Names {
  readonly directory: Directory
  /** `cluster.local`. */
  readonly domain: string
  readonly ttl: number
  /** Which of several comes first: nobody should always be asked first. */
  readonly turn: (many: number) => number
}

const VERSION = '1.1.0'
const VERSION_TTL = 28_800
/** Where the server itself is found. */
const OWN_SERVICE = serviceKey('kube-dns', 'kube-system')
const ELSEWHERE: Outcome = { is: 'elsewhere' }

export function lookUp(names: Names, question: Question): Outcome {
  const { name, type } = question
  if (isWithin(name, names.domain)) return inDomain(names, question)
  const zone = REVERSE_ZONES.find((known) => isWithin(name, known))
  if (zone === undefined) return ELSEWHERE
  if (name === zone) return type === TYPE.AXFR || type === TYPE.IXFR ? { is: 'refused' } : ELSEWHERE
  // What the cluster does not know of addresses others may.
  return type === TYPE.PTR ? (namesAt(names, name) ?? ELSEWHERE) : ELSEWHERE
}

export const isWithin = (name: string, zone: string): boolean => name === zone || name.endsWith(`.${zone}`)

/** One address, or one of its ports, under the name at which it is found alone. */
interface Found {
  readonly address: string
  readonly port: number | undefined
  readonly owner: string
}

/** What is there under a name. Undefined: there is no such name. */
type Content = { readonly found: readonly Found[] } | { readonly alias: string } | undefined

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

function ownAddresses({ directory, domain }: Names): { readonly found: readonly Found[] } {
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

interface Asked {
  readonly key: string
  readonly service: ServiceNames
  /** What is before the name of the Service: nothing, an endpoint, or a port and its protocol. */
  readonly labels: readonly string[]
}

function ofService(names: Names, { key, service, labels }: Asked): Content {
  if (service.alias !== undefined) return labels.length === 0 ? { alias: service.alias } : undefined
  const [port = '', protocol = ''] = labels.length === 2 ? labels.map((label) => label.replace(/^_/, '')) : []
  const endpoint = labels.length === 1 ? labels[0] : undefined
  const isAsked = (one: NamedPort): boolean =>
    (port === '' || one.name.toLowerCase() === port) && (protocol === '' || one.protocol === protocol)
  const owner = `${key}.svc.${names.domain}`
  const found =
    service.isHeadless || endpoint !== undefined
      ? ofEndpoints(names, { key, owner, endpoint, isAsked })
      : service.ports
          .filter(isAsked)
          .flatMap((one) => service.addresses.map((address) => ({ address, port: one.port, owner })))
  return found.length === 0 ? undefined : { found }
}

interface AskedEndpoints {
  readonly key: string
  readonly owner: string
  readonly endpoint: string | undefined
  readonly isAsked: (port: NamedPort) => boolean
}

function ofEndpoints({ directory }: Names, { key, owner, endpoint, isAsked }: AskedEndpoints): Found[] {
  const found: Found[] = []
  for (const { ports, endpoints } of directory.slicesOf(key)) {
    const asked = ports.filter(isAsked)
    if (asked.length === 0) continue
    for (const { address, host } of endpoints) {
      if (endpoint !== undefined && host !== endpoint) continue
      for (const { port } of asked) found.push({ address, port, owner: `${host}.${owner}` })
    }
  }
  return found
}

/** Whoever has the namespace may name any address in it: as CoreDNS does with `pods insecure`, which clusters come with. */
function podAt({ domain }: Names, name: string, namespace: string): Content {
  const isV4 = /^\d+(?:-\d+){3}$/.test(name)
  const address = name.replaceAll('-', isV4 ? '.' : ':')
  if (parseIp(address) === undefined) return undefined
  return { found: [{ address, port: undefined, owner: `${name}.${namespace}.pod.${domain}` }] }
}

function aliasOf({ ttl, domain: zone }: Names, { name, type }: Question, target: string): Outcome {
  const record: ResourceRecord = { name, type: TYPE.CNAME, ttl, data: { target } }
  if (type === TYPE.CNAME) return records([record])
  // An alias of itself is of nothing; SRV of other people's names is not ours to say.
  if (target === name || (type !== TYPE.A && type !== TYPE.AAAA && type !== TYPE.TXT)) return { is: 'no data', zone }
  return { is: 'alias', record, target, zone }
}

/** Each once, beginning with one and then another. */
function addresses(names: Names, { name, type }: Question, found: readonly Found[]): ResourceRecord[] {
  if (type !== TYPE.A && type !== TYPE.AAAA) return []
  const wanted: string[] = []
  const seen = new Set<string>()
  for (const { address } of found) {
    if (seen.has(address) || typeOf(address) !== type) continue
    seen.add(address)
    wanted.push(address)
  }
  return turned(names, wanted).map((address) => addressRecord(name, address, names.ttl))
}

function turned<T>({ turn }: Names, items: readonly T[]): readonly T[] {
  if (items.length < 2) return items
  const first = turn(items.length)
  return [...items.slice(first), ...items.slice(0, first)]
}

const typeOf = (address: string): number => (address.includes(':') ? TYPE.AAAA : TYPE.A)

function addressRecord(name: string, address: string, ttl: number): ResourceRecord {
  return { name, type: typeOf(address), ttl, data: { address } }
}

/** All alike in weight, and the addresses of those they name. */
function services(names: Names, name: string, found: readonly Found[]): Outcome | undefined {
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
  return records(turned(names, [...answers.values()]), [...additional.values()])
}

/** Services that have the address, or else endpoints that have it. */
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
