/**
 * Discovery: the served resources, as one aggregated document and as one small document per group version. The
 * documents change when the served kinds do.
 */
import { createHash } from 'node:crypto'

import type { APIResourceDiscovery } from '#apis/apidiscovery/v2.ts'
import { APIServices } from '#apis/apiregistration/v1.ts'
import { type Kind, kindFor, type ServedGroup, type ServedVersion, type Subresource } from '#apis/kinds.ts'
import { type Answer, type Call, otherwise, type WholeAnswer } from '#component/requests/call.ts'
import { compareText } from '#lib/go/text.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { contentTypeOf, isRefusal, type Negotiation, negotiateDiscovery } from '#meta/codec/negotiate.ts'
import { encodeProtobuf } from '#meta/codec/protobuf.ts'
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import type { StructSchema } from '#meta/schema.ts'
import { failure } from '#meta/status-errors.ts'

import type { Aggregated, AggregatedVersion, AnnouncedGroup } from '../aggregated.ts'
import { priorityOf } from '../bootstrap/apiservices.ts'
import { formOf } from '../handlers/view.ts'
import { sameFacts } from '../openapi/document.ts'
import type { Representation } from '../registry/representation.ts'
import { orderGroups, type OrderedGroup } from './group-order.ts'

export interface DiscoveryOptions {
  /** In display order; versions by preference. */
  readonly groups: () => readonly ServedGroup[]
  readonly schemaFor: (gvk: GroupVersionKind) => StructSchema | undefined
  readonly encoder: Pick<Representation, 'value'>
  /** True if resources show a hash of their storage version. */
  readonly hasStorageVersionHashes: boolean
  /** `host:port` for old clients. */
  readonly serverAddress: string
  /** The APIServices and resources of aggregated servers; absent without aggregation. */
  readonly aggregated?: Pick<Aggregated, 'announced' | 'versions'> | undefined
  /** Counts regenerations of the aggregated document. */
  readonly onAggregated?: () => void
}

interface Document {
  readonly kind: string
  readonly [member: string]: unknown
}

/** Answers `/api`, `/apis` and below; undefined for other paths and for unserved ones. */
export function createDiscovery(options: DiscoveryOptions): (call: Call) => Answer | undefined {
  const isCore = ({ name }: ServedGroup): boolean => name === ''
  const documents = createAggregatedDocuments(options)
  return (call) => {
    const parts = call.info.path.split('/').filter((part) => part !== '')
    const [root = '', first, second] = parts
    if (call.method !== 'GET' || (root !== 'api' && root !== 'apis')) return undefined
    const core = root === 'api'
    const groups = options.groups().filter((group) => isCore(group) === core && group.versions.length > 0)
    if (first === undefined) return rootDocument(call, options, groups, () => documents(core, groups))
    const version = core ? first : second
    if (parts.length > (core ? 2 : 3)) return undefined
    if (version === undefined) {
      const named = [...announcedIn(options), ...groups].find(({ name }) => name === first)
      return named === undefined ? undefined : plain(call, options, groupDocument(named))
    }
    const group = core ? groups[0] : groups.find(({ name }) => name === first)
    const served = group?.versions.find((one) => one.version === version)
    return served === undefined
      ? undefined
      : plain(call, options, resourceDocument(served, options.hasStorageVersionHashes))
  }
}

function rootDocument(
  call: Call,
  options: DiscoveryOptions,
  groups: readonly ServedGroup[],
  aggregated: () => AggregatedDocument,
): Answer {
  const negotiated = negotiateDiscovery(call.header('accept'))
  if (isRefusal(negotiated)) throw failure(negotiated)
  if (negotiated.as !== undefined) return aggregatedAnswer(call, options, aggregated(), negotiated)
  const document = call.info.path.startsWith('/apis')
    ? { kind: 'APIGroupList', apiVersion: 'v1', groups: listedGroups(options, groups).map(describeGroup) }
    : {
        kind: 'APIVersions',
        versions: groups.flatMap(({ versions }) => versions.map(({ version }) => version)),
        serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: options.serverAddress }],
      }
  const answer = plain(call, options, document)
  return { ...answer, headers: { ...answer.headers, Vary: 'Accept' } }
}

/** The groups of all APIServices, available or not, without core. */
function announcedIn({ aggregated }: DiscoveryOptions): readonly AnnouncedGroup[] {
  return (aggregated?.announced() ?? []).filter(({ name }) => name !== '')
}

/** apiregistration.k8s.io itself has no APIService. */
function listedGroups(options: DiscoveryOptions, served: readonly ServedGroup[]): readonly AnnouncedGroup[] {
  if (options.aggregated === undefined) return served
  return [...served.filter(({ name }) => name === APIServices.group), ...announcedIn(options)]
}

function plain(call: Call, { encoder, schemaFor }: DiscoveryOptions, document: Document): WholeAnswer {
  // Only the roots have other forms; below them parameters of the media type are ignored.
  const { negotiated, pretty } = formOf(
    otherwise(call, {
      header: (name) => (name === 'accept' ? stripParameters(call.header(name)) : call.header(name)),
    }),
    'object',
    false,
  )
  if (negotiated.mediaType !== 'application/vnd.kubernetes.protobuf') {
    return encoder.value(document as unknown as KubeObject, { negotiated, pretty }, 200)
  }
  // The envelope names the version even where JSON omits it.
  const gvk = { group: '', version: 'v1', kind: document.kind }
  const schema = schemaFor(gvk)
  if (schema === undefined) throw new Error(`No schema for ${document.kind}`)
  return { status: 200, contentType: contentTypeOf(negotiated), body: encodeProtobuf(schema, gvk, document as never) }
}

function stripParameters(accept: string): string {
  return accept
    .split(',')
    .map((clause) => clause.split(';')[0]?.trim() ?? '')
    .join(',')
}

function describeGroup({ name, versions }: AnnouncedGroup): object {
  const described = versions.map((version) => ({ groupVersion: apiVersionOf(version), version: version.version }))
  return { name, versions: described, preferredVersion: described[0] }
}

function groupDocument(group: AnnouncedGroup): Document {
  return { kind: 'APIGroup', apiVersion: 'v1', ...describeGroup(group) }
}

function resourceDocument(version: ServedVersion, hasHashes: boolean): Document {
  const resources = version.kinds.flatMap((kind) => [
    describeResource(kind, hasHashes),
    ...kind.subresources.map((part) => describePart(kind, part)),
  ])
  const isCore = version.group === ''
  return {
    kind: 'APIResourceList',
    ...(isCore ? {} : { apiVersion: 'v1' }),
    groupVersion: apiVersionOf(version),
    resources,
  }
}

function describeResource(kind: Kind, hasHashes: boolean): object {
  const { plural, singular, namespaced, shortNames, categories, verbs, storageVersionHash } = kind
  return {
    name: plural,
    singularName: singular,
    namespaced,
    kind: kind.kind,
    verbs,
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
    ...(storageVersionHash === undefined || !hasHashes ? {} : { storageVersionHash }),
  }
}

function describePart(kind: Kind, { name, kind: body, verbs }: Subresource): object {
  const foreign = body.group !== kind.group || body.version !== kind.version
  return {
    name: `${kind.plural}/${name}`,
    singularName: '',
    namespaced: kind.namespaced,
    ...(foreign ? { group: body.group, version: body.version } : {}),
    kind: body.kind,
    verbs,
  }
}

interface AggregatedDocument {
  /** Its inputs: the document is made again when they change. */
  readonly of: readonly unknown[]
  readonly document: object
  readonly text: string
  readonly etag: string
}

/** The documents of `/api` and `/apis`, cached until the served resources change. */
function createAggregatedDocuments({
  aggregated,
  onAggregated,
}: DiscoveryOptions): (isCore: boolean, groups: readonly ServedGroup[]) => AggregatedDocument {
  const made = new Map<boolean, AggregatedDocument>()
  return (isCore, groups) => {
    const remote = (aggregated?.versions() ?? []).filter(({ group }) => (group === '') === isCore)
    const of = [...groups.flatMap(({ versions }) => versions.flatMap(({ kinds }) => kinds)), ...remote]
    const known = made.get(isCore)
    if (known !== undefined && sameFacts(known.of, of)) return known
    onAggregated?.()
    const items = orderGroups([...groups.flatMap(versionsOf), ...remote]).map(groupItem)
    const document = { kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2', metadata: {}, items }
    const text = encodeJson(document)
    const etag = `"${createHash('sha512').update(text).digest('hex').toUpperCase()}"`
    const next = { of, document, text, etag }
    made.set(isCore, next)
    return next
  }
}

function aggregatedAnswer(
  call: Call,
  { schemaFor }: DiscoveryOptions,
  { document, text, etag }: AggregatedDocument,
  negotiated: Negotiation,
): Answer {
  const headers = { Vary: 'Accept', 'Cache-Control': 'public', Etag: etag }
  const contentType = contentTypeOf(negotiated)
  if (call.header('if-none-match') === etag) return { status: 304, contentType, body: '', headers }
  const gvk = { group: 'apidiscovery.k8s.io', version: 'v2', kind: 'APIGroupDiscoveryList' }
  const schema = schemaFor(gvk)
  const protobuf = negotiated.mediaType === 'application/vnd.kubernetes.protobuf' && schema !== undefined
  return { status: 200, contentType, body: protobuf ? encodeProtobuf(schema, gvk, document as never) : text, headers }
}

/** The group versions of this server, with upstream's priorities. */
function versionsOf({ name, versions }: ServedGroup): AggregatedVersion[] {
  return versions.map(({ version, kinds }) => {
    const priority = priorityOf(name, version)
    const discovery = { version, resources: inOrder(kinds).map(aggregatedResource), freshness: 'Current' }
    return { group: name, groupPriority: priority.group, versionPriority: priority.version, discovery }
  })
}

function groupItem({ name, versions }: OrderedGroup): object {
  return { metadata: name === '' ? {} : { name }, versions: versions.map(({ discovery }) => discovery) }
}

/** Custom resources are sorted by name here, and in insertion order in the plain documents. */
function inOrder(kinds: readonly Kind[]): readonly Kind[] {
  const [first] = kinds
  if (first === undefined || kindFor(first) !== undefined) return kinds
  return kinds.toSorted((one, other) => compareText(one.plural, other.plural))
}

function aggregatedResource(kind: Kind): APIResourceDiscovery {
  const { plural, singular, namespaced, shortNames, categories, verbs, subresources } = kind
  return {
    resource: plural,
    responseKind: responseKind(kind, kind),
    scope: namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs: [...verbs],
    ...(shortNames.length === 0 ? {} : { shortNames: [...shortNames] }),
    ...(categories.length === 0 ? {} : { categories: [...categories] }),
    ...(subresources.length === 0
      ? {}
      : {
          subresources: subresources.map((part) => ({
            subresource: part.name,
            responseKind: responseKind(kind, part.kind),
            verbs: [...part.verbs],
          })),
        }),
  }
}

/** A built-in kind of the resource's own group version is shown without group and version. */
function responseKind(home: Kind, { group, version, kind }: GroupVersionKind): GroupVersionKind {
  if (kindFor(home) === undefined) return { group, version, kind }
  return home.group === group && home.version === version ? { group: '', version: '', kind } : { group, version, kind }
}
