/**
 * Entry: one stored object in the cache, as JSON text with its resource version. Labels and the parsed object are
 * computed on demand.
 *
 * Texts are latin1 strings, one character per byte, because Node writes headers and a string body in one piece.
 */
import { isAt } from '#lib/bytes-at.ts'
import { parseJson } from '#lib/json/json.ts'
import { latin1 } from '#lib/latin1.ts'
import type { KubeObject } from '#meta/object.ts'
import { type KeyValue, type Revision, StorageError } from '#storage/backend.ts'

export interface Entry {
  readonly key: string
  readonly modRevision: Revision
  readonly namespace: string
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** By field label: `spec.nodeName`. Only those the resource declares. */
  readonly fields: Readonly<Record<string, string>>
  /** `"metadata":{…},…}`: the object's text from its metadata on, in the storage version. */
  readonly body: string
  /** The length of the body, known without making it. */
  readonly bytes: number
  /** The object in canonical form with kind and apiVersion: shared, never modified. */
  readonly object: KubeObject
  /** Cached encodings (protobuf, other versions, table cells) by name. */
  readonly memo: Map<string, unknown>
  /** The version of its body. Absent: the kind's storage version. */
  readonly apiVersion?: string | undefined
  /** The first version converter that found the entry unchanged by conversion. */
  unchangedBy?: object | undefined
}

/** Makes the entries of one resource. */
export interface EntryMaker {
  /** `{"kind":"Pod","apiVersion":"v1",`: the part that a body lacks. */
  readonly prefix: string
  /** From stored bytes. `isListed`: they are part of a larger buffer, which the entry may keep alive. */
  read(stored: KeyValue, isListed?: boolean): Entry
  /** From the object that was just written, without parsing. Revision 0, for dry-run creates, is no version. */
  written(key: string, text: string, object: KubeObject, revision: Revision): Entry
}

export interface EntryMakerOptions {
  readonly prefix: string
  /** `/registry/pods/`: the part of a key before namespace and name. */
  readonly keyPrefix: string
  /** Decrypts stored bytes. */
  readonly open: (stored: KeyValue) => Uint8Array
  /** Decodes other formats to the canonical JSON text of the storage version, without a resource version. */
  readonly decode: (bytes: Uint8Array) => string | OtherText
  readonly fields: (object: KubeObject) => Readonly<Record<string, string>>
  /** For objects that may stay in old versions: the current storage version. */
  readonly apiVersion?: string
}

/** The text of an object in an old storage version. */
export interface OtherText {
  readonly apiVersion: string
  /** From its metadata on. */
  readonly body: string
}

const NOTHING: Readonly<Record<string, string>> = Object.freeze({})

export function createEntryMaker(options: EntryMakerOptions): EntryMaker {
  const { prefix, keyPrefix, open, decode, fields } = options
  const head = new HeadReader(prefix)
  /** Equal for many entries, which share one string. */
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
      // Decrypted values have their own memory.
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
 * Throws `corrupt` for a sealed value under the key of another object. Not every cipher authenticates the storage key:
 * without this check, a person who can write to the store but has no key could move a Secret to a namespace where they
 * may read it.
 */
function checkKey({ key, namespace, name, object: { metadata } }: Entry): void {
  if (metadata.name === name && (metadata.namespace ?? '') === namespace) return
  throw new StorageError('corrupt', `The value of "${key}" was sealed for another object`)
}

/** A string; or bytes without a version, which is inserted at `cut`. */
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
/** The fields that may precede the uid, in this order. */
const NAMES = ['"name":"', '"generateName":"', '"namespace":"'].map((field) => Buffer.from(field))
const UID_BYTES = Buffer.from(UID)
const VERSION_BYTES = Buffer.from(',"resourceVersion')
const [QUOTE, COMMA, BACKSLASH, CLOSING_BRACE] = [0x22, 0x2c, 0x5c, 0x7d]

/**
 * Recognizes values that this server wrote: canonical JSON of the kind in its storage version, which need no parsing.
 * Works on bytes: a start reads every stored object, and a string and a regular expression for each would cost more
 * than the rest.
 */
class HeadReader {
  readonly #prefixBytes: number
  readonly #opening: Buffer
  /** The buffer of the last value: the next one is probably in the same. */
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

  /** The offset after the uid; undefined if other fields precede it or a version follows. */
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

/** The offset after the closing quote; the end of the buffer if an escape comes first. */
function endOfText(memory: Buffer, start: number): number {
  for (let at = start; at < memory.length; at++) {
    if (memory[at] === QUOTE) return at + 1
    if (memory[at] === BACKSLASH) break
  }
  return memory.length
}

/** Digits that may be an integer beyond a double's precision; matches inside strings only cost the slower parser. */
const LONG_NUMBER = /\d{16}/
/** For stored values. */
const NO_LIMITS = { maxDepth: 10_000, maxLength: Infinity, maxWeight: Infinity }

/**
 * Parses a body. This server wrote it in canonical form, so parsing returns the canonical object. Only integers beyond
 * 2^53 need more than the native parser: clients may store any int64.
 */
export function parseBody(body: string): KubeObject {
  const text = Buffer.from(`{${body}`, 'latin1').toString('utf8')
  return (LONG_NUMBER.test(text) ? parseJson(text, { limits: NO_LIMITS }) : JSON.parse(text)) as KubeObject
}

/** The common members of entries of one version. */
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
  unchangedBy: object | undefined
  #labels: Readonly<Record<string, string>> | undefined
  #fields: Readonly<Record<string, string>> | undefined
  /**
   * A strong reference to a recently written object, else a weak one: a hot object stays, a cold one costs only its
   * bytes.
   */
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
    const cached = this.#object instanceof WeakRef ? this.#object.deref() : this.#object
    if (cached !== undefined) return cached
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

/** The last written objects: watchers and followers read them next. */
const KNOWN_ENTRIES = 256
const lately: (StoredEntry | undefined)[] = []
let next = 0

const LABELS = '"labels":{'

/**
 * Reads the labels without parsing the rest. The metadata before them contains no object, so the first brace is theirs;
 * keys and values of labels contain no braces. Undefined for anything unexpected.
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

/** The fields before the version in Go's order. */
const BEFORE_VERSION: ReadonlySet<string> = new Set(['name', 'generateName', 'namespace', 'selfLink', 'uid'])

/** Canonical metadata has ordered fields, so the version is inserted on the way. */
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
 * Inserts the version in Go's field order: after the uid, which every stored object has. Only names precede it, which
 * contain no quotes, so the first `"uid":"` is the object's own.
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

/** The body of a deletion event: the last state with the revision of the deletion. */
export function bodyAt(entry: Entry, revision: Revision): string {
  const old = `"resourceVersion":"${entry.modRevision}"`
  const at = entry.body.indexOf(old)
  return `${entry.body.slice(0, at)}"resourceVersion":"${revision}"${entry.body.slice(at + old.length)}`
}
