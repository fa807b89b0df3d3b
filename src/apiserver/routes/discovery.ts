/**
 * Discovery: what the server serves, for clients that want to know. One aggregated document for clients that ask for it,
 * one small document for each group version for those that do not. All are made from the served kinds, when they change.
 */
import { createHash } from 'node:crypto'

import type { Kind, ServedGroup, ServedVersion, Subresource } from '#apis/kinds.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { contentTypeOf, isRefusal, type Negotiated, negotiateDiscovery } from '#meta/codec/negotiate.ts'
import { encodeProtobuf } from '#meta/codec/protobuf.ts'
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import type { StructSchema } from '#meta/schema.ts'
import { failure } from '#meta/status-errors.ts'

import type { Representation } from '../answers/representation.ts'
import type { Answer, Call, WholeAnswer } from '../call.ts'
import { formOf } from '../handlers/view.ts'

export interface DiscoveryOptions {
  /** In the order to be shown; versions by preference. */
  readonly groups: () => readonly ServedGroup[]
  readonly schemaFor: (gvk: GroupVersionKind) => StructSchema | undefined
  readonly encoder: Pick<Representation, 'value'>
  /** Whether resources say by which version they are stored, as a hash. */
  readonly hasStorageVersionHashes: boolean
  /** `host:port` for clients of old. */
  readonly serverAddress: string
}

interface Document {
  readonly kind: string
  readonly [member: string]: unknown
}

/** Answers `/api`, `/apis` and below; undefined for paths that are not discovery, or name nothing served. */
export function createDiscovery(options: DiscoveryOptions): (call: Call) => Answer | undefined {
  const isCore = ({ name }: ServedGroup): boolean => name === ''
  return (call) => {
    const parts = call.info.path.split('/').filter((part) => part !== '')
    const [root = '', first, second] = parts
    if (call.method !== 'GET' || (root !== 'api' && root !== 'apis')) return undefined
    const core = root === 'api'
    const groups = options.groups().filter((group) => isCore(group) === core && group.versions.length > 0)
    if (first === undefined) return rootDocument(call, options, groups, core)
    const group = core ? groups[0] : groups.find(({ name }) => name === first)
    const version = core ? first : second
    if (group === undefined || parts.length > (core ? 2 : 3)) return undefined
    if (version === undefined) return plain(call, options, groupDocument(group))
    const served = group.versions.find((one) => one.version === version)
    return served === undefined
      ? undefined
      : plain(call, options, resourceDocument(served, options.hasStorageVersionHashes))
  }
}

function rootDocument(call: Call, options: DiscoveryOptions, groups: readonly ServedGroup[], core: boolean): Answer {
  const negotiated = negotiateDiscovery(call.header('accept'))
  if (isRefusal(negotiated)) throw failure(negotiated)
  if (negotiated.as !== undefined) return aggregated(call, options, groups, negotiated)
  const document = core
    ? {
        kind: 'APIVersions',
        versions: groups.flatMap(({ versions }) => versions.map(({ version }) => version)),
        serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: options.serverAddress }],
      }
    : { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map(describeGroup) }
  const answer = plain(call, options, document)
  return { ...answer, headers: { ...answer.headers, Vary: 'Accept' } }
}

function plain(call: Call, { encoder, schemaFor }: DiscoveryOptions, document: Document): WholeAnswer {
  // Only the roots come in other shapes; below, what a client asks for beyond the media type is ignored.
  const { negotiated, pretty } = formOf(
    { ...call, header: (name) => (name === 'accept' ? stripParameters(call.header(name)) : call.header(name)) },
    'object',
    false,
  )
  if (negotiated.mediaType !== 'application/vnd.kubernetes.protobuf') {
    return encoder.value(document as unknown as KubeObject, { negotiated, pretty }, 200)
  }
  // The envelope names the version even where JSON leaves it out.
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

function describeGroup({ name, versions }: ServedGroup): object {
  const described = versions.map((version) => ({ groupVersion: apiVersionOf(version), version: version.version }))
  return { name, versions: described, preferredVersion: described[0] }
}

function groupDocument(group: ServedGroup): Document {
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

function aggregated(
  call: Call,
  { schemaFor }: DiscoveryOptions,
  groups: readonly ServedGroup[],
  negotiated: Negotiated,
): Answer {
  const document = {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: groups.map(describeAggregated),
  }
  const text = encodeJson(document)
  const etag = `"${createHash('sha512').update(text).digest('hex').toUpperCase()}"`
  const headers = { Vary: 'Accept', 'Cache-Control': 'public', Etag: etag }
  const contentType = contentTypeOf(negotiated)
  if (call.header('if-none-match') === etag) return { status: 304, contentType, body: '', headers }
  const gvk = { group: 'apidiscovery.k8s.io', version: 'v2', kind: 'APIGroupDiscoveryList' }
  const schema = schemaFor(gvk)
  const protobuf = negotiated.mediaType === 'application/vnd.kubernetes.protobuf' && schema !== undefined
  return { status: 200, contentType, body: protobuf ? encodeProtobuf(schema, gvk, document as never) : text, headers }
}

function describeAggregated({ name, versions }: ServedGroup): object {
  return {
    metadata: name === '' ? {} : { name },
    versions: versions.map((version) => ({
      version: version.version,
      resources: version.kinds.map((kind) => aggregatedResource(kind)),
      freshness: 'Current',
    })),
  }
}

function aggregatedResource(kind: Kind): object {
  const { plural, singular, namespaced, shortNames, categories, verbs, subresources } = kind
  return {
    resource: plural,
    responseKind: responseKind(kind, kind),
    scope: namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs,
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
    ...(subresources.length === 0
      ? {}
      : {
          subresources: subresources.map((part) => ({
            subresource: part.name,
            responseKind: responseKind(kind, part.kind),
            verbs: part.verbs,
          })),
        }),
  }
}

/** A kind of the resource's own group version is shown without group and version. */
function responseKind(home: Kind, { group, version, kind }: GroupVersionKind): object {
  return home.group === group && home.version === version ? { group: '', version: '', kind } : { group, version, kind }
}
