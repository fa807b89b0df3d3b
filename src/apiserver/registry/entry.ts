/**
 * Entry: one stored object as the cache keeps it. The text that goes on the wire is made once, with the resource version
 * already inside, and shared by every answer and every watcher; the parsed object is made when somebody needs it. What
 * selectors look at is taken out beforehand, so that filtering parses nothing.
 *
 * Texts are latin1 strings, one character a byte: Node writes a header and a string body in one piece.
 */
import { parseJson } from '#lib/json.ts'
import type { KubeObject } from '#meta/object.ts'
import type { KeyValue, Revision } from '#storage/backend.ts'

import { latin1 } from './latin1.ts'

export interface Entry {
  readonly key: string
  readonly modRevision: Revision
  readonly namespace: string
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** By field label: `spec.nodeName`. Only those the resource declares. */
  readonly fields: Readonly<Record<string, string>>
  /** `"metadata":{…},…}`: the object's text from its metadata on, in the version it is stored in. */
  readonly body: string
  /** The object in canonical form, without kind and apiVersion told apart: shared, never to be changed. */
  readonly object: KubeObject
  /** Answers in other forms (protobuf, other versions, table cells), by a name of the maker's. */
  readonly memo: Map<string, unknown>
}

/** How entries of one resource are made. */
export interface EntryMaker {
  /** `{"kind":"Pod","apiVersion":"v1",`: what a body lacks. */
  readonly prefix: string
  /** From stored bytes. */
  read(stored: KeyValue): Entry
  /**
   * From the object that was just written, so that nothing is parsed again. Revision 0, of what a dry run would have
   * created, is no version.
   */
  written(key: string, text: string, object: KubeObject, revision: Revision): Entry
}

export interface EntryMakerOptions {
  readonly prefix: string
  /** Stored bytes to the canonical object and its JSON text in the storage version, both without a resource version. */
  readonly decode: (stored: KeyValue) => { readonly object: KubeObject; readonly text: string }
  readonly fields: (object: KubeObject) => Readonly<Record<string, string>>
}

const NOTHING: Readonly<Record<string, string>> = Object.freeze({})

export function createEntryMaker({ prefix, decode, fields }: EntryMakerOptions): EntryMaker {
  const make = (key: string, text: string, object: KubeObject, revision: Revision): Entry => {
    const { metadata } = object
    return new StoredEntry({
      key,
      modRevision: revision,
      namespace: metadata.namespace ?? '',
      name: metadata.name ?? '',
      labels: metadata.labels ?? NOTHING,
      fields: fields(object),
      body: latin1(withVersion(text.slice(prefix.length), revision)),
      object: { ...object, metadata: versioned(metadata, revision) },
    })
  }
  return {
    prefix,
    read(stored) {
      const { object, text } = decode(stored)
      return make(stored.key, text, object, stored.modRevision)
    },
    written: make,
  }
}

/** What may be an integer that a double cannot hold; digits inside text only cost the slower parser. */
const LONG_NUMBER = /\d{16}/
/** Of what is stored already. */
const NO_LIMITS = { maxDepth: 10_000, maxLength: Infinity, maxWeight: Infinity }

/**
 * The body is what this server wrote in canonical form, so parsing gives the canonical object back. Only integers beyond
 * 2^53 need more than the native parser: any int64 a client gives may be there.
 */
export function parseBody(body: string): KubeObject {
  const text = Buffer.from(`{${body}`, 'latin1').toString('utf8')
  return (LONG_NUMBER.test(text) ? parseJson(text, { limits: NO_LIMITS }) : JSON.parse(text)) as KubeObject
}

/** Parsed objects are held weakly: a hot one stays, a cold one costs only its bytes. */
class StoredEntry implements Entry {
  readonly key: string
  readonly modRevision: Revision
  readonly namespace: string
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly fields: Readonly<Record<string, string>>
  readonly body: string
  #object: WeakRef<KubeObject>
  #memo: Map<string, unknown> | undefined

  constructor(parts: Omit<Entry, 'memo'>) {
    this.key = parts.key
    this.modRevision = parts.modRevision
    this.namespace = parts.namespace
    this.name = parts.name
    this.labels = parts.labels
    this.fields = parts.fields
    this.body = parts.body
    this.#object = new WeakRef(parts.object)
  }

  get object(): KubeObject {
    const held = this.#object.deref()
    if (held !== undefined) return held
    const parsed = parseBody(this.body)
    this.#object = new WeakRef(parsed)
    return parsed
  }

  get memo(): Map<string, unknown> {
    this.#memo ??= new Map()
    return this.#memo
  }
}

function versioned(metadata: KubeObject['metadata'], revision: Revision): KubeObject['metadata'] {
  const { name, generateName, namespace, selfLink, uid, ...rest } = metadata
  return {
    ...(name !== undefined && { name }),
    ...(generateName !== undefined && { generateName }),
    ...(namespace !== undefined && { namespace }),
    ...(selfLink !== undefined && { selfLink }),
    ...(uid !== undefined && { uid }),
    ...(revision !== 0 && { resourceVersion: String(revision) }),
    ...rest,
  }
}

const UID = '"uid":"'
const METADATA = '"metadata":{'

/**
 * The version goes where Go's field order has it: after the uid, which every stored object has. In front of the uid
 * there are only names, which hold no quotes, so the first `"uid":"` is the object's own.
 */
function withVersion(body: string, revision: Revision): string {
  if (revision === 0) return body
  const uid = body.startsWith(METADATA) ? body.indexOf(UID) : -1
  const at = uid < 0 ? METADATA.length : body.indexOf('"', uid + UID.length) + 1
  const version = `"resourceVersion":"${revision}"`
  const empty = body[at] === '}'
  return uid < 0
    ? `${body.slice(0, at)}${version}${empty ? '' : ','}${body.slice(at)}`
    : `${body.slice(0, at)},${version}${body.slice(at)}`
}

/** The body of a deletion: the last state, with the version at which it went. */
export function bodyAt(entry: Entry, revision: Revision): string {
  const old = `"resourceVersion":"${entry.modRevision}"`
  const at = entry.body.indexOf(old)
  return `${entry.body.slice(0, at)}"resourceVersion":"${revision}"${entry.body.slice(at + old.length)}`
}
