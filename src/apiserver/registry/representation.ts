/**
 * Encodes an entry in the form that a client requested. JSON in the storage version is the entry's text preceded by its
 * kind; other forms are encoded on demand and cached.
 */
import type { Kind } from '#apis/kinds.ts'
import type { WholeAnswer } from '#component/requests/call.ts'
import type { Form } from '#component/requests/response-form.ts'
import { encodeValue, protobufSchemaOf } from '#component/requests/value-encoder.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { latin1 } from '#lib/latin1.ts'
import { runInSlices, type Steps, yieldToEventLoop } from '#lib/time-slicing.ts'
import { writeYaml } from '#lib/yaml/yaml.ts'
import { encodeJson, typeMetaPrefix } from '#meta/codec/encode-json.ts'
import { metadataText } from '#meta/codec/metadata-text.ts'
import { contentTypeOf, type MediaType, type Negotiation, notAList } from '#meta/codec/negotiate.ts'
import { type PartialForm, partialObject } from '#meta/codec/partial.ts'
import { encodeEnvelope, encodeEnvelopeAround, encodeListItems, encodeMessage } from '#meta/codec/protobuf.ts'
import { apiVersionOf, type GroupVersionKind, internalTypeOf } from '#meta/kind.ts'
import type { KubeObject, ListMeta } from '#meta/object.ts'
import type { StructSchema } from '#meta/schema.ts'
import { failure } from '#meta/status-errors.ts'

import type { ByteMemo } from './byte-memo.ts'
import type { Entry } from './entry.ts'
import type { Shapes } from './shapes.ts'
import { isLarge } from './sizes.ts'
import type { VersionConverter } from './version-converter.ts'

export interface RepresentationOptions {
  /** The kind in the version of the request. */
  readonly kind: Kind
  /** The kind in the storage version. */
  readonly stored: GroupVersionKind
  readonly shapes: Shapes
  readonly memos: ByteMemo
  /** For a custom resource: the converter of this version. */
  readonly converter?: VersionConverter
}

const PROTOBUF: MediaType = 'application/vnd.kubernetes.protobuf'

/** The encoding of list items in one form, so that lists can be joined from runs of items. */
export interface ItemForm {
  /** The cache key of the form and version. */
  readonly name: string
  /** The consecutive items, each followed by the separator (a comma, or nothing). */
  encode(entries: readonly Entry[]): Buffer
  /** The length of the separator, which is cut off after the last item. */
  readonly separatorBytes: number
  /** The bytes around `itemBytes` of items. */
  frame(metadata: ListMeta, itemBytes: number): { readonly head: Buffer; readonly tail: Buffer }
}

/** One resource in one served version. */
export class Representation {
  readonly kind: Kind
  /** `{"kind":"Pod","apiVersion":"v1",`. */
  readonly prefix: string
  readonly #options: RepresentationOptions
  readonly #storedVersion: boolean
  /** By name; bounded by the negotiable forms. */
  readonly #itemForms = new Map<string, ItemForm>()

  constructor(options: RepresentationOptions) {
    this.#options = options
    this.kind = options.kind
    this.prefix = typeMetaPrefix(options.kind)
    this.#storedVersion = apiVersionOf(options.kind) === apiVersionOf(options.stored)
  }

  get converter(): VersionConverter | undefined {
    return this.#options.converter
  }

  /** The entry with body and object in the version of the request, converted if necessary. */
  look(entry: Entry): Entry {
    return this.#options.converter?.convert(entry) ?? entry
  }

  /** The object in the version of the request, with its kind. Shared: do not modify it. */
  objectOf(entry: Entry): KubeObject {
    const { shapes, stored, kind, converter } = this.#options
    const own = { kind: kind.kind, apiVersion: apiVersionOf(kind) }
    if (converter !== undefined) return { ...own, ...converter.convert(entry).object, ...own }
    const whole = { kind: stored.kind, apiVersion: apiVersionOf(stored), ...entry.object }
    return this.#storedVersion ? whole : shapes.convert(whole, kind)
  }

  /** The JSON of an entry in the version of the request, from its metadata on, as a latin1 string. */
  bodyOf(entry: Entry): string {
    if (this.#options.converter !== undefined) return this.#options.converter.convert(entry).body
    if (this.#storedVersion) return entry.body
    return this.#remembered(entry, `json:${apiVersionOf(this.kind)}`, () =>
      latin1(encodeJson(this.objectOf(entry))).slice(this.prefix.length),
    )
  }

  /** One object, with the final newline of JSON. Throws 406 if the client wants a list. */
  async object(entry: Entry, { negotiated, pretty }: Form, status: number): Promise<WholeAnswer> {
    const contentType = contentTypeOf(negotiated)
    const { mediaType, as } = negotiated
    if (as?.kind === 'PartialObjectMetadataList') throw failure(notAList(`*${internalTypeOf(this.kind)}`))
    if (!this.#storedVersion && isLarge({}, entry)) await yieldToEventLoop()
    const isPartial = as?.kind === 'PartialObjectMetadata'
    const partial = isPartial ? as : undefined
    if (mediaType === 'application/json' && !pretty) {
      const body = isPartial ? this.partialText(entry, as) : `${this.prefix}${this.bodyOf(entry)}`
      return { status, contentType, body: `${body}\n` }
    }
    if (mediaType === PROTOBUF)
      return { status, contentType, body: encodeEnvelope(this.#itemKind(partial), this.#message(entry, partial)) }
    const shape = this.#shapeOf(entry, partial)
    const body = await runInSlices(this.#encodeForPeople(shape, { negotiated, pretty }))
    return { status, contentType, body }
  }

  /** Encodes any object without caching. */
  value(object: KubeObject, { negotiated, pretty }: Form, status: number): WholeAnswer {
    return { status, contentType: contentTypeOf(negotiated), body: this.encode(object, negotiated, pretty) }
  }

  encode(object: KubeObject, negotiated: Negotiation, pretty: boolean): string | Buffer {
    return encodeValue(object, { negotiated, pretty }, this.#options.shapes.schemaFor)
  }

  /** The protobuf envelope of an entry, cached with the entry. */
  envelopeOf(entry: Entry): Buffer {
    return encodeEnvelope(this.kind, this.#message(entry, undefined))
  }

  /** A list as indented JSON or YAML, which have no `itemForm`. */
  async listForPeople(
    entries: readonly Entry[],
    metadata: ListMeta,
    { negotiated, pretty }: Form,
  ): Promise<WholeAnswer> {
    const partial = partialFormOf(negotiated)
    const isYaml = negotiated.mediaType === 'application/yaml'
    const items = await runInSlices(this.#itemsForPeople(entries, { negotiated, pretty }))
    const { group, version: listVersion, kind } = this.#listKind(partial)
    const none = entries.length === 0 ? noItems(partial) : []
    const apiVersion = apiVersionOf({ group, version: listVersion })
    const frame = { kind, apiVersion, metadata: this.#listMeta(metadata, partial), items: none }
    const empty = this.encode(frame, negotiated, pretty) as string
    const body = isYaml ? withYamlItems(empty, items) : withJsonItems(empty, items)
    return { status: 200, contentType: contentTypeOf(negotiated), body }
  }

  /** The items in the form of the list. */
  *#itemsForPeople(entries: readonly Entry[], form: Form): Steps<string[]> {
    const partial = partialFormOf(form.negotiated)
    const indent = form.negotiated.mediaType === 'application/yaml' ? asYamlItem : asJsonItem
    const items: string[] = []
    for (const entry of entries) {
      yield
      const shape = this.#shapeOf(entry, partial)
      const shown = partial === undefined && !this.#itemsSayKind ? withoutTypeMeta(shape) : shape
      items.push(indent(yield* this.#encodeForPeople(shown, form)))
    }
    return items
  }

  /** `encode` for possibly large values. */
  *#encodeForPeople(object: object, { negotiated, pretty }: Form): Steps<string> {
    if (negotiated.mediaType === 'application/yaml') return latin1(yield* writeYaml(object))
    return this.encode(object as KubeObject, negotiated, pretty) as string
  }

  /** True for a custom resource, whose list kind may have any name. */
  get #itemsSayKind(): boolean {
    return this.converter !== undefined
  }

  /** Upstream's lists of custom resources have no Go type that omits an empty `continue`. */
  #listMeta(metadata: ListMeta, partial: PartialForm | undefined): ListMeta {
    return this.#itemsSayKind && partial === undefined ? { continue: '', ...metadata } : metadata
  }

  /** Undefined for the forms of `listForPeople`. */
  itemForm({ negotiated, pretty }: Form): ItemForm | undefined {
    const { mediaType } = negotiated
    if (pretty || mediaType === 'application/yaml') return undefined
    const partial = partialFormOf(negotiated)
    const target = partial === undefined ? '' : `${partial.version} ${partial.omitsManagedFields === true}`
    const name = `${mediaType} ${apiVersionOf(this.kind)} ${target} ${this.converter?.name ?? ''}`
    let form = this.#itemForms.get(name)
    if (form === undefined) {
      form = mediaType === PROTOBUF ? this.#protobufItems(name, partial) : this.#jsonItems(name, partial)
      this.#itemForms.set(name, form)
    }
    return form
  }

  #jsonItems(name: string, partial: PartialForm | undefined): ItemForm {
    const prefix = typeMetaPrefix(this.#listKind(partial))
    const start = this.#itemsSayKind ? typeMetaPrefix(this.kind) : '{'
    const text = (entry: Entry): string =>
      partial === undefined ? `${start}${this.bodyOf(entry)},` : `${this.partialText(entry, partial)},`
    return {
      name,
      separatorBytes: 1,
      encode: (entries) => Buffer.from(entries.map(text).join(''), 'latin1'),
      frame: (metadata, itemBytes) => {
        const isNothing = itemBytes === 0 && noItems(partial) === null
        const meta = encodeJson(this.#listMeta(metadata, partial))
        const head = `${prefix}"metadata":${meta},"items":${isNothing ? 'null' : '['}`
        return { head: Buffer.from(head), tail: isNothing ? NOTHING_TAIL : JSON_TAIL }
      },
    }
  }

  /** The list's message has an envelope that starts with its length; items are fields of it. */
  #protobufItems(name: string, partial: PartialForm | undefined): ItemForm {
    const gvk = this.#listKind(partial)
    const schema = this.#schemaOf(gvk)
    return {
      name,
      separatorBytes: 0,
      encode: (entries) =>
        encodeListItems(
          schema,
          entries.map((entry) => this.#message(entry, partial)),
        ),
      frame(metadata, itemBytes) {
        const start = encodeMessage(schema, { metadata, items: [] } as unknown as JsonObject)
        return encodeEnvelopeAround(gvk, start, itemBytes)
      },
    }
  }

  /** The message of an entry, or of its metadata only. */
  #message(entry: Entry, partial: PartialForm | undefined): Buffer {
    const gvk = this.#itemKind(partial)
    return this.#remembered(entry, `protobuf:${apiVersionOf(gvk)}:${partial?.omitsManagedFields === true}`, () =>
      encodeMessage(this.#schemaOf(gvk), this.#shapeOf(entry, partial) as unknown as JsonObject),
    )
  }

  /** The metadata of an entry as a separate object, in JSON, as a latin1 string. */
  partialText(entry: Entry, partial: PartialForm): string {
    // Built-in conversions may move fields into annotations.
    const isConverted = !this.#storedVersion && this.#options.converter === undefined
    const metadata = isConverted ? undefined : metadataText(this.bodyOf(entry), partial)
    if (metadata === undefined) return latin1(encodeJson(this.#shapeOf(entry, partial)))
    return `${typeMetaPrefix(this.#itemKind(partial))}${metadata}}`
  }

  #shapeOf(entry: Entry, partial: PartialForm | undefined): KubeObject {
    const object = this.objectOf(entry)
    if (partial === undefined) return object
    return partialObject(object as unknown as JsonObject, partial) as unknown as KubeObject
  }

  #itemKind(partial: PartialForm | undefined): GroupVersionKind {
    if (partial === undefined) return this.kind
    return { group: 'meta.k8s.io', version: partial.version, kind: 'PartialObjectMetadata' }
  }

  #listKind(partial: PartialForm | undefined): GroupVersionKind {
    const { group, version, listKind } = this.kind
    if (partial === undefined) return { group, version, kind: listKind }
    return { group: 'meta.k8s.io', version: partial.version, kind: 'PartialObjectMetadataList' }
  }

  #schemaOf(gvk: GroupVersionKind): StructSchema {
    return protobufSchemaOf(gvk, this.#options.shapes.schemaFor)
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

/** Upstream makes metadata lists from their items: without any, the member `items` is absent. */
function noItems(partial: PartialForm | undefined): [] | null {
  return partial === undefined ? [] : null
}

function partialFormOf({ as }: Negotiation): PartialForm | undefined {
  return as?.kind === 'PartialObjectMetadataList' ? as : undefined
}

function withoutTypeMeta({ kind: _kind, apiVersion: _apiVersion, ...rest }: KubeObject): Omit<KubeObject, 'kind'> {
  return rest
}

/** The declared kind of an object. */
/** An indented list with its items. Only line breaks contain newlines. */
function withJsonItems(empty: string, items: readonly string[]): string {
  if (items.length === 0) return empty
  const end = empty.lastIndexOf(']')
  return `${empty.slice(0, end)}\n${items.join(',\n')}\n  ${empty.slice(end)}`
}

function asJsonItem(text: string): string {
  return `    ${text.replaceAll('\n', '\n    ')}`
}

/** The same in YAML, where empty lines stay empty and each item ends with a newline. */
function withYamlItems(empty: string, items: readonly string[]): string {
  if (items.length === 0) return empty
  return empty.replace('items: []\n', () => `items:\n${items.join('')}`)
}

function asYamlItem(text: string): string {
  return `- ${text.slice(0, -1).replaceAll(/\n(?=[^\n])/g, '\n  ')}\n`
}
