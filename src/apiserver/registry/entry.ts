/**
 * Entry: one stored object as the cache keeps it, which is little more than its text. The text goes on the wire as it is,
 * with the resource version already inside, shared by every answer and every watcher. What else there is to know of the
 * object, its labels or the parsed object itself, is found out when somebody asks: most are never asked about.
 *
 * Texts are latin1 strings, one character a byte: Node writes a header and a string body in one piece.
 */
import { isAt } from '#lib/bytes-at.ts'
import { parseJson } from '#lib/json.ts'
import type { KubeObject } from '#meta/object.ts'
import { type KeyValue, type Revision, StorageError } from '#storage/backend.ts'

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
  /** Of the body, known without making it. */
  readonly bytes: number
  /** The object in canonical form, without kind and apiVersion told apart: shared, never to be changed. */
  readonly object: KubeObject
  /** Answers in other forms (protobuf, other versions, table cells), by a name of the maker's. */
  readonly memo: Map<string, unknown>
  /** The version its body is in. Absent: the one in which its kind is stored. */
  readonly apiVersion?: string | undefined
  /** The first lens that found it to be as it shows it. */
  seenBy?: object | undefined
}

/** How entries of one resource are made. */
export interface EntryMaker {
  /** `{"kind":"Pod","apiVersion":"v1",`: what a body lacks. */
  readonly prefix: string
  /** From stored bytes. `isListed`: they were listed with many others, so that their memory may be held on to. */
  read(stored: KeyValue, isListed?: boolean): Entry
  /**
   * From the object that was just written, so that nothing is parsed again. Revision 0, of what a dry run would have
   * created, is no version.
   */
  written(key: string, text: string, object: KubeObject, revision: Revision): Entry
}

export interface EntryMakerOptions {
  readonly prefix: string
  /** `/registry/pods/`: what is before namespace and name in a key. */
  readonly keyPrefix: string
  /** Stored bytes as they were before they were sealed. */
  readonly open: (stored: KeyValue) => Uint8Array
  /** The JSON text, in canonical form and the storage version, of what is neither. Without a resource version. */
  readonly decode: (bytes: Uint8Array) => string | OtherText
  readonly fields: (object: KubeObject) => Readonly<Record<string, string>>
  /** Where objects may stay in versions of old: the one they are written in now. */
  readonly apiVersion?: string
}

/** The text of an object that stays in another version than the one its kind is written in now. */
export interface OtherText {
  readonly apiVersion: string
  /** From its metadata on. */
  readonly body: string
}

const NOTHING: Readonly<Record<string, string>> = Object.freeze({})

export function createEntryMaker(options: EntryMakerOptions): EntryMaker {
  const { prefix, keyPrefix, open, decode, fields } = options
  const head = new HeadReader(prefix)
  /** Equal for so many that they share one string. */
  let namespace = ''
  const namespaceOf = (key: string): string => {
    const slash = key.lastIndexOf('/')
    if (slash < keyPrefix.length) return ''
    if (!key.startsWith(`${namespace}/`, keyPrefix.length)) namespace = key.slice(keyPrefix.length, slash)
    return namespace
  }
  const home: Home = { fields, apiVersion: options.apiVersion }
  const make = (key: string, revision: Revision, text: Text, at = home): StoredEntry =>
    new StoredEntry(key, revision, { namespace: namespaceOf(key), text, home: at })
  const makeText = (text: string, revision: Revision): Text => latin1(withVersion(text.slice(prefix.length), revision))
  const readOther = (key: string, revision: Revision, other: string | OtherText): StoredEntry => {
    if (typeof other === 'string') return make(key, revision, makeText(other, revision))
    return make(key, revision, latin1(withVersion(other.body, revision)), { fields, apiVersion: other.apiVersion })
  }
  return {
    prefix,
    read(stored, isListed = false) {
      const { key, value, modRevision } = stored
      const bytes = open(stored)
      const isSealed = bytes !== value
      const whole = head.read(bytes)
      // Sealed values were opened into memory of their own.
      const entry =
        whole === undefined
          ? readOther(key, modRevision, decode(bytes))
          : make(key, modRevision, isListed && !isSealed ? whole : textOf(whole, modRevision))
      if (isSealed) checkKey(entry)
      return entry
    },
    written(key, text, object, revision) {
      const entry = make(key, revision, makeText(text, revision))
      entry.know({ ...object, metadata: versioned(object.metadata, revision) })
      return entry
    },
  }
}

/**
 * Throws `corrupt` for a sealed value under the key of another object. Not every cipher authenticates the storage key: without
 * this check, a person who can write to the store but has no key could move a Secret to a namespace where they may read it.
 */
function checkKey({ key, namespace, name, object: { metadata } }: Entry): void {
  if (metadata.name === name && (metadata.namespace ?? '') === namespace) return
  throw new StorageError('corrupt', `The value of "${key}" was sealed for another object`)
}

/** A string; or bytes without a version, which goes in at `cut`. */
type Text = string | Unversioned

interface Unversioned {
  readonly memory: Buffer
  readonly start: number
  readonly cut: number
  readonly end: number
}

function textOf({ memory, start, cut, end }: Unversioned, revision: Revision): string {
  return `${memory.toString('latin1', start, cut)}${versionText(revision)}${memory.toString('latin1', cut, end)}`
}

function versionText(revision: Revision): string {
  return `,"resourceVersion":"${revision}"`
}

const UID = '"uid":"'
const METADATA = '"metadata":{'
/** What may stand before the uid, in this order. */
const NAMES = ['"name":"', '"generateName":"', '"namespace":"'].map((field) => Buffer.from(field))
const UID_BYTES = Buffer.from(UID)
const VERSION_BYTES = Buffer.from(',"resourceVersion')
const [QUOTE, COMMA, BACKSLASH, CLOSING_BRACE] = [0x22, 0x2c, 0x5c, 0x7d]

/**
 * Recognizes what this server writes: canonical JSON of the kind in its storage version. Nothing need be parsed then.
 * Byte by byte: a start reads every stored object, and a text and a match of each cost more than the rest of it.
 */
class HeadReader {
  readonly #prefixBytes: number
  readonly #opening: Buffer
  /** The memory of the last value read: the next is likely to be in the same. */
  #memory: Buffer = Buffer.alloc(0)

  constructor(prefix: string) {
    this.#prefixBytes = prefix.length
    this.#opening = Buffer.from(`${prefix}${METADATA}`)
  }

  /** Undefined for everything else. */
  read(bytes: Uint8Array): Unversioned | undefined {
    const { buffer, byteOffset: start, byteLength } = bytes
    if (this.#memory.buffer !== buffer)
      this.#memory = bytes instanceof Buffer && byteLength === buffer.byteLength ? bytes : Buffer.from(buffer)
    const memory = this.#memory
    const end = start + byteLength
    if (memory[end - 1] !== CLOSING_BRACE) return undefined
    const cut = this.#versionPlace(memory, start)
    return cut === undefined || cut >= end ? undefined : { memory, start: start + this.#prefixBytes, cut, end }
  }

  /** Right after the uid; undefined when anything else is before it than names, or a version after it. */
  #versionPlace(memory: Buffer, start: number): number | undefined {
    if (!isAt(memory, start, this.#opening)) return undefined
    let at = start + this.#opening.length
    for (const name of NAMES) {
      if (!isAt(memory, at, name)) continue
      at = endOfText(memory, at + name.length)
      if (memory[at++] !== COMMA) return undefined
    }
    if (!isAt(memory, at, UID_BYTES)) return undefined
    at = endOfText(memory, at + UID_BYTES.length)
    return isAt(memory, at, VERSION_BYTES) ? undefined : at
  }
}

/** Right after the closing quote; the end of all where there is none before something is escaped. */
function endOfText(memory: Buffer, start: number): number {
  for (let at = start; at < memory.length; at++) {
    if (memory[at] === QUOTE) return at + 1
    if (memory[at] === BACKSLASH) break
  }
  return memory.length
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

/** What entries of one version have in common. */
interface Home {
  readonly fields: EntryMakerOptions['fields']
  readonly apiVersion: string | undefined
}

interface EntryParts {
  readonly namespace: string
  readonly text: Text
  readonly home: Home
}

class StoredEntry implements Entry {
  readonly key: string
  readonly modRevision: Revision
  readonly namespace: string
  readonly #text: Text
  readonly #home: Home
  seenBy: object | undefined
  #labels: Readonly<Record<string, string>> | undefined
  #fields: Readonly<Record<string, string>> | undefined
  /** Of what was written lately the object itself, else weakly: a hot one stays, a cold one costs only its bytes. */
  #object: KubeObject | WeakRef<KubeObject> | undefined
  #memo: Map<string, unknown> | undefined

  constructor(key: string, revision: Revision, { namespace, text, home }: EntryParts) {
    this.key = key
    this.modRevision = revision
    this.namespace = namespace
    this.#text = text
    this.#home = home
  }

  get apiVersion(): string | undefined {
    return this.#home.apiVersion
  }

  get name(): string {
    return this.key.slice(this.key.lastIndexOf('/') + 1)
  }

  get body(): string {
    return typeof this.#text === 'string' ? this.#text : textOf(this.#text, this.modRevision)
  }

  get bytes(): number {
    const text = this.#text
    return typeof text === 'string' ? text.length : text.end - text.start + versionText(this.modRevision).length
  }

  get labels(): Readonly<Record<string, string>> {
    this.#labels ??= labelsOf(this.body) ?? this.object.metadata.labels ?? NOTHING
    return this.#labels
  }

  get fields(): Readonly<Record<string, string>> {
    this.#fields ??= this.#home.fields(this.object)
    return this.#fields
  }

  get object(): KubeObject {
    const held = this.#object instanceof WeakRef ? this.#object.deref() : this.#object
    if (held !== undefined) return held
    const parsed = parseBody(this.body)
    this.#object = new WeakRef(parsed)
    return parsed
  }

  get memo(): Map<string, unknown> {
    this.#memo ??= new Map()
    return this.#memo
  }

  /** Keeps the object until many others have been written. */
  know(object: KubeObject): void {
    this.#object = object
    const before = lately[next]
    if (before !== undefined) before.#object = undefined
    lately[next] = this
    next = (next + 1) % KNOWN_ENTRIES
  }
}

/** Written last: watchers and followers are about to look at them. */
const KNOWN_ENTRIES = 256
const lately: (StoredEntry | undefined)[] = []
let next = 0

const LABELS = '"labels":{'

/**
 * The labels without parsing the rest. In front of them the metadata has no object, so if there are any theirs is the
 * first; keys and values of labels hold no braces. Undefined for what does not look like that.
 */
function labelsOf(body: string): Readonly<Record<string, string>> | undefined {
  const brace = body.indexOf('{', METADATA.length)
  if (!body.startsWith(LABELS, brace + 1 - LABELS.length)) return undefined
  try {
    return JSON.parse(body.slice(brace, body.indexOf('}', brace) + 1)) as Record<string, string>
  } catch {
    return undefined
  }
}

/** What stands before the version in Go's order. */
const BEFORE_VERSION: ReadonlySet<string> = new Set(['name', 'generateName', 'namespace', 'selfLink', 'uid'])

/** Canonical metadata has its fields in order, so the version goes in on the way. */
function versioned(metadata: KubeObject['metadata'], revision: Revision): KubeObject['metadata'] {
  if (revision === 0) return metadata
  const given = metadata as Readonly<Record<string, unknown>>
  const out: Record<string, unknown> = {}
  let isIn = false
  for (const name of Object.keys(given)) {
    if (!isIn && !BEFORE_VERSION.has(name)) {
      out['resourceVersion'] = String(revision)
      isIn = true
    }
    out[name] = given[name]
  }
  if (!isIn) out['resourceVersion'] = String(revision)
  return out
}

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
