/**
 * Representation: an entry in the form a client asked for. JSON in the stored version, which is nearly every request, is
 * the entry's own text with its kind in front; every other form is made on demand and remembered with the entry.
 */
import type { Kind } from '#apis/kinds.ts'
import type { JsonObject } from '#lib/json-value.ts'
import { stringifyYaml } from '#lib/yaml.ts'
import { encodeJson, typeMetaPrefix } from '#meta/codec/encode-json.ts'
import { contentTypeOf, type Negotiated } from '#meta/codec/negotiate.ts'
import { partialObject, type PartialVersion } from '#meta/codec/partial.ts'
import { encodeProtobuf } from '#meta/codec/protobuf.ts'
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'
import type { KubeObject, ListMeta } from '#meta/object.ts'
import type { StructSchema } from '#meta/schema.ts'
import { notAcceptableError } from '#meta/status-errors.ts'

import type { WholeAnswer } from './call.ts'
import type { Entry } from './registry/entry.ts'
import { latin1 } from './registry/latin1.ts'

export interface Form {
  readonly negotiated: Negotiated
  /** For people: indented. */
  readonly pretty: boolean
}

export interface RepresentationOptions {
  /** As the request addresses it. */
  readonly kind: Kind
  /** As it is stored. */
  readonly stored: GroupVersionKind
  readonly schemaFor: (gvk: GroupVersionKind) => StructSchema | undefined
  readonly convert: (object: KubeObject, to: GroupVersionKind) => KubeObject
}

/** One resource in one served version. */
export class Representation {
  readonly kind: Kind
  /** `{"kind":"Pod","apiVersion":"v1",`. */
  readonly prefix: string
  readonly #options: RepresentationOptions
  readonly #storedVersion: boolean

  constructor(options: RepresentationOptions) {
    this.#options = options
    this.kind = options.kind
    this.prefix = typeMetaPrefix(options.kind)
    this.#storedVersion = apiVersionOf(options.kind) === apiVersionOf(options.stored)
  }

  /** The object in the version of the request, with its kind. Shared: not to be changed. */
  objectOf(entry: Entry): KubeObject {
    const { convert, stored, kind } = this.#options
    const whole = { kind: stored.kind, apiVersion: apiVersionOf(stored), ...entry.object }
    return this.#storedVersion ? whole : convert(whole, kind)
  }

  /** The JSON of an entry in the version of the request, from its metadata on, as a latin1 string. */
  bodyOf(entry: Entry): string {
    if (this.#storedVersion) return entry.body
    const name = `json:${this.kind.version}:${this.kind.group}`
    const known = entry.memo.get(name)
    if (known !== undefined) return known as string
    const text = latin1(encodeJson(this.objectOf(entry))).slice(this.prefix.length)
    entry.memo.set(name, text)
    return text
  }

  /** One object, with the newline that ends JSON answers. */
  object(entry: Entry, { negotiated, pretty }: Form, status: number): WholeAnswer {
    const contentType = contentTypeOf(negotiated)
    if (negotiated.as === undefined && negotiated.mediaType === 'application/json' && !pretty) {
      return { status, contentType, body: `${this.prefix}${this.bodyOf(entry)}\n` }
    }
    return this.value(this.#partial(this.objectOf(entry), negotiated), { negotiated, pretty }, status)
  }

  /** Any object, encoded now. */
  value(object: KubeObject, { negotiated, pretty }: Form, status: number): WholeAnswer {
    return { status, contentType: contentTypeOf(negotiated), body: this.encode(object, negotiated, pretty) }
  }

  encode(object: KubeObject, { mediaType }: Negotiated, pretty: boolean): string | Buffer {
    switch (mediaType) {
      case 'application/json':
        return latin1(`${encodeJson(object, { pretty })}\n`)
      case 'application/yaml':
        return latin1(stringifyYaml(object))
      case 'application/vnd.kubernetes.protobuf': {
        const gvk = gvkOf(object)
        const schema = this.#options.schemaFor(gvk)
        if (schema === undefined) throw notAcceptableError(['application/json', 'application/yaml'])
        return encodeProtobuf(schema, gvk, object as unknown as JsonObject)
      }
      default:
        return mediaType satisfies never
    }
  }

  /** A list: head, items and tail as one latin1 string, or encoded whole for the other forms. */
  list(entries: readonly Entry[], metadata: ListMeta, { negotiated, pretty }: Form): WholeAnswer {
    const contentType = contentTypeOf(negotiated)
    const { kind } = this
    if (negotiated.as === undefined && negotiated.mediaType === 'application/json' && !pretty) {
      const items = entries.map((entry) => `{${this.bodyOf(entry)}`).join(',')
      return { status: 200, contentType, body: `${this.listHead(metadata)}${items}]}\n` }
    }
    const objects = entries.map((entry) => this.objectOf(entry))
    const partial = negotiated.as?.kind === 'PartialObjectMetadataList'
    const version = negotiated.as?.version ?? 'v1'
    const items = partial
      ? objects.map((object) => partialObject(object as unknown as JsonObject, version as PartialVersion))
      : objects.map(withoutTypeMeta)
    const typeMeta = partial
      ? { kind: 'PartialObjectMetadataList', apiVersion: `meta.k8s.io/${version}` }
      : { kind: kind.listKind, apiVersion: apiVersionOf(kind) }
    const list = { ...typeMeta, metadata, items } as unknown as KubeObject
    return { status: 200, contentType, body: this.encode(list, negotiated, pretty) }
  }

  /** `{"kind":"PodList","apiVersion":"v1","metadata":{…},"items":[`. */
  listHead(metadata: ListMeta): string {
    const { group, version, listKind } = this.kind
    return `${typeMetaPrefix({ group, version, kind: listKind })}"metadata":${encodeJson(metadata)},"items":[`
  }

  #partial(object: KubeObject, { as }: Negotiated): KubeObject {
    if (as?.kind !== 'PartialObjectMetadata') return object
    return partialObject(object as unknown as JsonObject, as.version as PartialVersion) as unknown as KubeObject
  }
}

function withoutTypeMeta({ kind: _kind, apiVersion: _apiVersion, ...rest }: KubeObject): Omit<KubeObject, 'kind'> {
  return rest
}

/** What an object says it is. */
export function gvkOf({ apiVersion = '', kind = '' }: KubeObject): GroupVersionKind {
  const slash = apiVersion.indexOf('/')
  return { group: slash < 0 ? '' : apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1), kind }
}
