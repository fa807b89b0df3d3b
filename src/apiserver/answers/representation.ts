/**
 * Representation: an entry in the form a client asked for. JSON in the stored version, which is nearly every request, is
 * the entry's own text with its kind in front; every other form is made on demand and remembered with the entry. Lists
 * are never encoded as a whole where their items' bytes can be joined.
 */
import type { Kind } from '#apis/kinds.ts'
import type { JsonObject } from '#lib/json-value.ts'
import { inSlices, type Steps } from '#lib/slices.ts'
import { stringifyYaml, writeYaml } from '#lib/yaml.ts'
import { encodeJson, typeMetaPrefix } from '#meta/codec/encode-json.ts'
import { contentTypeOf, type MediaType, type Negotiated, notAList } from '#meta/codec/negotiate.ts'
import { partialObject, type PartialVersion } from '#meta/codec/partial.ts'
import { encodeEnvelope, encodeEnvelopeAround, encodeListItems, encodeMessage } from '#meta/codec/protobuf.ts'
import { apiVersionOf, type GroupVersionKind, internalTypeOf } from '#meta/kind.ts'
import type { KubeObject, ListMeta } from '#meta/object.ts'
import type { StructSchema } from '#meta/schema.ts'
import { failure, notAcceptableError } from '#meta/status-errors.ts'

import type { WholeAnswer } from '../call.ts'
import type { ByteMemo } from '../registry/byte-memo.ts'
import type { Entry } from '../registry/entry.ts'
import { latin1 } from '../registry/latin1.ts'
import type { Lens } from '../registry/lens.ts'
import type { Shapes } from '../registry/shapes.ts'
import type { Form } from './form.ts'

export interface RepresentationOptions {
  /** As the request addresses it. */
  readonly kind: Kind
  /** As it is stored. */
  readonly stored: GroupVersionKind
  readonly shapes: Shapes
  readonly memos: ByteMemo
  /** Of a custom resource: how this version shows what is stored. */
  readonly lens?: Lens
}

const PROTOBUF: MediaType = 'application/vnd.kubernetes.protobuf'

/** How the items of lists are written in one form, so that lists can be put together from runs of items. */
export interface ItemForm {
  /** Tells it from all other forms and versions of the same resource. */
  readonly name: string
  /** The items in a row, each followed by what stands between two (a comma, or nothing). */
  encode(entries: readonly Entry[]): Buffer
  /** Bytes of what stands between two items, and so also after the last: to be cut off there. */
  readonly separatorBytes: number
  /** What goes around `itemBytes` of items. */
  frame(metadata: ListMeta, itemBytes: number): { readonly head: Buffer; readonly tail: Buffer }
}

/** One resource in one served version. */
export class Representation {
  readonly kind: Kind
  /** `{"kind":"Pod","apiVersion":"v1",`. */
  readonly prefix: string
  readonly #options: RepresentationOptions
  readonly #storedVersion: boolean
  /** By name; there are as many as forms that can be negotiated. */
  readonly #itemForms = new Map<string, ItemForm>()

  constructor(options: RepresentationOptions) {
    this.#options = options
    this.kind = options.kind
    this.prefix = typeMetaPrefix(options.kind)
    this.#storedVersion = apiVersionOf(options.kind) === apiVersionOf(options.stored)
  }

  get lens(): Lens | undefined {
    return this.#options.lens
  }

  /** The entry whose body and object are in the version of the request, where a lens makes them so. */
  look(entry: Entry): Entry {
    return this.#options.lens?.look(entry) ?? entry
  }

  /** The object in the version of the request, with its kind. Shared: not to be changed. */
  objectOf(entry: Entry): KubeObject {
    const { shapes, stored, kind, lens } = this.#options
    const own = { kind: kind.kind, apiVersion: apiVersionOf(kind) }
    if (lens !== undefined) return { ...own, ...lens.look(entry).object, ...own }
    const whole = { kind: stored.kind, apiVersion: apiVersionOf(stored), ...entry.object }
    return this.#storedVersion ? whole : shapes.convert(whole, kind)
  }

  /** The JSON of an entry in the version of the request, from its metadata on, as a latin1 string. */
  bodyOf(entry: Entry): string {
    if (this.#options.lens !== undefined) return this.#options.lens.look(entry).body
    if (this.#storedVersion) return entry.body
    return this.#remembered(entry, `json:${apiVersionOf(this.kind)}`, () =>
      latin1(encodeJson(this.objectOf(entry))).slice(this.prefix.length),
    )
  }

  /** One object, with the newline that ends JSON answers. Throws 406 for who wants it as a list. */
  async object(entry: Entry, { negotiated, pretty }: Form, status: number): Promise<WholeAnswer> {
    const contentType = contentTypeOf(negotiated)
    const { mediaType, as } = negotiated
    if (as?.kind === 'PartialObjectMetadataList') throw failure(notAList(`*${internalTypeOf(this.kind)}`))
    const isPartial = as?.kind === 'PartialObjectMetadata'
    const version = isPartial ? as.version : undefined
    if (mediaType === 'application/json' && !pretty) {
      const body = isPartial ? this.partialText(entry, as.version) : `${this.prefix}${this.bodyOf(entry)}`
      return { status, contentType, body: `${body}\n` }
    }
    if (mediaType === PROTOBUF)
      return { status, contentType, body: encodeEnvelope(this.#itemKind(version), this.#message(entry, version)) }
    const shape = this.#shapeOf(entry, version)
    const body = await inSlices(this.#encodeForPeople(shape, { negotiated, pretty }))
    return { status, contentType, body }
  }

  /** Any object, encoded now. */
  value(object: KubeObject, { negotiated, pretty }: Form, status: number): WholeAnswer {
    return { status, contentType: contentTypeOf(negotiated), body: this.encode(object, negotiated, pretty) }
  }

  encode(object: KubeObject, { mediaType }: Negotiated, pretty: boolean): string | Buffer {
    switch (mediaType) {
      case 'application/json':
        // Upstream ends JSON with a newline, unless it is indented.
        return latin1(pretty ? encodeJson(object, { pretty }) : `${encodeJson(object)}\n`)
      case 'application/yaml':
        return latin1(stringifyYaml(object))
      case 'application/vnd.kubernetes.protobuf': {
        const gvk = gvkOf(object)
        return encodeEnvelope(gvk, encodeMessage(this.#schemaOf(gvk), object as unknown as JsonObject))
      }
      default:
        return mediaType satisfies never
    }
  }

  /** The object of an entry in its envelope (protobuf), remembered with the entry. */
  envelopeOf(entry: Entry): Buffer {
    return encodeEnvelope(this.kind, this.#message(entry, undefined))
  }

  /** A list in one of the forms that only people read, indented JSON and YAML: those that have no `itemForm`. */
  async listForPeople(
    entries: readonly Entry[],
    metadata: ListMeta,
    { negotiated, pretty }: Form,
  ): Promise<WholeAnswer> {
    const version = partialVersionOf(negotiated)
    const isYaml = negotiated.mediaType === 'application/yaml'
    const items = await inSlices(this.#itemsForPeople(entries, { negotiated, pretty }))
    const { group, version: listVersion, kind } = this.#listKind(version)
    const none = entries.length === 0 ? noItems(version) : []
    const apiVersion = apiVersionOf({ group, version: listVersion })
    const frame = { kind, apiVersion, metadata: this.#listMeta(metadata, version), items: none }
    const empty = this.encode(frame, negotiated, pretty) as string
    const body = isYaml ? withYamlItems(empty, items) : withJsonItems(empty, items)
    return { status: 200, contentType: contentTypeOf(negotiated), body }
  }

  /** Each as it stands in the list. */
  *#itemsForPeople(entries: readonly Entry[], form: Form): Steps<string[]> {
    const version = partialVersionOf(form.negotiated)
    const indent = form.negotiated.mediaType === 'application/yaml' ? asYamlItem : asJsonItem
    const items: string[] = []
    for (const entry of entries) {
      yield
      const shape = this.#shapeOf(entry, version)
      const shown = version === undefined && !this.#itemsSayKind ? withoutTypeMeta(shape) : shape
      items.push(indent(yield* this.#encodeForPeople(shown, form)))
    }
    return items
  }

  /** As `encode`, of what may be large. */
  *#encodeForPeople(object: object, { negotiated, pretty }: Form): Steps<string> {
    if (negotiated.mediaType === 'application/yaml') return latin1(yield* writeYaml(object))
    return this.encode(object as KubeObject, negotiated, pretty) as string
  }

  /** Of a custom resource nobody else could tell: its list may be called anything. */
  get #itemsSayKind(): boolean {
    return this.lens !== undefined
  }

  /** Lists of custom resources are made without a Go type, which would leave out that nothing is left to list. */
  #listMeta(metadata: ListMeta, partialVersion: string | undefined): ListMeta {
    return this.#itemsSayKind && partialVersion === undefined ? { continue: '', ...metadata } : metadata
  }

  /** Undefined for the forms that `listForPeople` is for. */
  itemForm({ negotiated, pretty }: Form): ItemForm | undefined {
    const { mediaType } = negotiated
    if (pretty || mediaType === 'application/yaml') return undefined
    const version = partialVersionOf(negotiated)
    const name = `${mediaType} ${apiVersionOf(this.kind)} ${version ?? ''} ${this.lens?.name ?? ''}`
    let form = this.#itemForms.get(name)
    if (form === undefined) {
      form = mediaType === PROTOBUF ? this.#protobufItems(name, version) : this.#jsonItems(name, version)
      this.#itemForms.set(name, form)
    }
    return form
  }

  #jsonItems(name: string, version: string | undefined): ItemForm {
    const prefix = typeMetaPrefix(this.#listKind(version))
    const start = this.#itemsSayKind ? typeMetaPrefix(this.kind) : '{'
    const text = (entry: Entry): string =>
      version === undefined ? `${start}${this.bodyOf(entry)},` : `${this.partialText(entry, version)},`
    return {
      name,
      separatorBytes: 1,
      encode: (entries) => Buffer.from(entries.map(text).join(''), 'latin1'),
      frame: (metadata, itemBytes) => {
        const isNothing = itemBytes === 0 && noItems(version) === null
        const meta = encodeJson(this.#listMeta(metadata, version))
        const head = `${prefix}"metadata":${meta},"items":${isNothing ? 'null' : '['}`
        return { head: Buffer.from(head), tail: isNothing ? NOTHING_TAIL : JSON_TAIL }
      },
    }
  }

  /** The list's message is in an envelope, which says its length in front; items are fields of it. */
  #protobufItems(name: string, version: string | undefined): ItemForm {
    const gvk = this.#listKind(version)
    const schema = this.#schemaOf(gvk)
    return {
      name,
      separatorBytes: 0,
      encode: (entries) =>
        encodeListItems(
          schema,
          entries.map((entry) => this.#message(entry, version)),
        ),
      frame(metadata, itemBytes) {
        const start = encodeMessage(schema, { metadata, items: [] } as unknown as JsonObject)
        return encodeEnvelopeAround(gvk, start, itemBytes)
      },
    }
  }

  /** The message of an entry, or of its metadata alone in the version given. */
  #message(entry: Entry, version: string | undefined): Buffer {
    const gvk = this.#itemKind(version)
    return this.#remembered(entry, `protobuf:${apiVersionOf(gvk)}`, () =>
      encodeMessage(this.#schemaOf(gvk), this.#shapeOf(entry, version) as unknown as JsonObject),
    )
  }

  /** The metadata of an entry as an object of its own, in JSON, as a latin1 string. */
  partialText(entry: Entry, version: string): string {
    return this.#remembered(entry, `partial:${version}:${apiVersionOf(this.kind)}`, () =>
      latin1(encodeJson(this.#shapeOf(entry, version))),
    )
  }

  #shapeOf(entry: Entry, partialVersion: string | undefined): KubeObject {
    const object = this.objectOf(entry)
    if (partialVersion === undefined) return object
    return partialObject(object as unknown as JsonObject, partialVersion as PartialVersion) as unknown as KubeObject
  }

  #itemKind(partialVersion: string | undefined): GroupVersionKind {
    if (partialVersion === undefined) return this.kind
    return { group: 'meta.k8s.io', version: partialVersion, kind: 'PartialObjectMetadata' }
  }

  #listKind(partialVersion: string | undefined): GroupVersionKind {
    const { group, version, listKind } = this.kind
    if (partialVersion === undefined) return { group, version, kind: listKind }
    return { group: 'meta.k8s.io', version: partialVersion, kind: 'PartialObjectMetadataList' }
  }

  #schemaOf(gvk: GroupVersionKind): StructSchema {
    const schema = this.#options.shapes.schemaFor(gvk)
    if (schema?.protobuf === undefined) throw notAcceptableError(['application/json', 'application/yaml'])
    return schema
  }

  #remembered<T extends string | Buffer>(entry: Entry, name: string, make: () => T): T {
    const { memos } = this.#options
    const known = memos.get<T>(entry.memo, name)
    if (known !== undefined) return known
    const value = make()
    return memos.keep(entry.memo, name, { value, bytes: value.length })
  }
}

const JSON_TAIL = Buffer.from(']}\n')
const NOTHING_TAIL = Buffer.from('}\n')

/** Upstream makes lists of metadata from what they hold: when that is nothing, they have no items at all. */
function noItems(partialVersion: string | undefined): [] | null {
  return partialVersion === undefined ? [] : null
}

function partialVersionOf({ as }: Negotiated): string | undefined {
  return as?.kind === 'PartialObjectMetadataList' ? as.version : undefined
}

function withoutTypeMeta({ kind: _kind, apiVersion: _apiVersion, ...rest }: KubeObject): Omit<KubeObject, 'kind'> {
  return rest
}

/** What an object says it is. */
export function gvkOf({ apiVersion = '', kind = '' }: KubeObject): GroupVersionKind {
  const slash = apiVersion.indexOf('/')
  return { group: slash < 0 ? '' : apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1), kind }
}

/** An indented list with its items. Only what separates lines holds newlines. */
function withJsonItems(empty: string, items: readonly string[]): string {
  if (items.length === 0) return empty
  const end = empty.lastIndexOf(']')
  return `${empty.slice(0, end)}\n${items.join(',\n')}\n  ${empty.slice(end)}`
}

function asJsonItem(text: string): string {
  return `    ${text.replaceAll('\n', '\n    ')}`
}

/** The same in YAML, where empty lines stay empty and items end with a newline each. */
function withYamlItems(empty: string, items: readonly string[]): string {
  if (items.length === 0) return empty
  return empty.replace('items: []\n', () => `items:\n${items.join('')}`)
}

function asYamlItem(text: string): string {
  return `- ${text.slice(0, -1).replaceAll(/\n(?=[^\n])/g, '\n  ')}\n`
}
