/**
 * Scans JSON text fast and decides if JSON.parse reads it correctly. It does not check syntax; it looks for repeated
 * keys, numbers beyond doubles, escaped surrogates, depth and cost. A false "no" only costs the time of the exact
 * parser.
 */
import { JsonError } from './value.ts'

export interface JsonLimits {
  /** How deep arrays and objects may nest. */
  readonly maxDepth: number
  /** How many UTF-16 units the text may have. */
  readonly maxLength: number
  /** How much work the text may make, in units of one plain array element: about 16 ns. */
  readonly maxWeight: number
}

/**
 * The depth is Go's; the length is far over any request (servers bound the body before). The weight is about 40 ms of
 * parsing and decoding, or 100 ms where it is all names: no request may hold the event loop longer. A ConfigMap of
 * 1 MiB may have some 75,000 of them, and must not be refused.
 */
export const DEFAULT_JSON_LIMITS: JsonLimits = { maxDepth: 10_000, maxLength: 256 * 2 ** 20, maxWeight: 700_000 }

export interface JsonScan {
  /** No doubt: the native parser gives the exact value, and no key is repeated. */
  readonly plain: boolean
  /** A number has a fraction, which matters only to callers that check numbers by their text. */
  readonly fractions: boolean
  /** The work the text makes for the exact parser, in the units of `maxWeight`. */
  readonly exactWeight: number
}

/** The cost of an array or object for the native parser. A new key costs three times as much as counted here. */
const CONTAINER_WEIGHT = 7
const NAME_WEIGHT = 8
/** A text in an array costs the parser little, but it is compared, sorted and validated later: 116,000 are the most. */
const ARRAY_TEXT_WEIGHT = 5

/** The exact parser takes so many times as long as the native one; for a new key, only a little longer. */
const EXACT_COST = 6
const EXACT_NAME_WEIGHT = 10

/** An integer of so many digits is always safe. */
const SAFE_DIGITS = 15

/** Keys beyond this many are not compared here (the exact parser does it), to keep the scratch memory small. */
const MAX_KEYS = 1 << 17

/** Past this many bytes a search for the closing quote by the runtime beats looking at each. */
const SHORT_STRING = 64

/**
 * The scan under way, and scratch memory kept between scans, which neither wait nor call out. Keys are numbered on and
 * on: a slot that holds a number below `first` is free, so nothing needs clearing. Key `n` has its hash, the start of
 * its text and the number of its object at index `n - first`.
 */
const run = {
  first: 1,
  next: 1,
  newNames: 0,
  /** Texts in arrays. */
  texts: 0,
  /** The first quote and the first backslash at or behind the last place they were looked for from. */
  quote: -1,
  backslash: -1,
  odd: false,
  fractions: false,
  slots: new Int32Array(1 << 12),
  hashes: new Int32Array(1 << 11),
  starts: new Int32Array(1 << 11),
  owners: new Int32Array(1 << 11),
  /** At each depth the object or array around it: its number, negative for an array. */
  outer: new Int32Array(DEFAULT_JSON_LIMITS.maxDepth),
  /** Hashes of names met lately anywhere: such a name costs the native parser next to nothing. */
  names: new Int32Array(1 << 14),
  encoded: new Uint8Array(1 << 18),
}
const encoder = new TextEncoder()

/**
 * `bytes` is the text in UTF-8, for callers that already have it. Throws a JsonError with code `limit` if the text is
 * too long or too costly to parse at once.
 */
export function scanJson(text: string, limits: JsonLimits = DEFAULT_JSON_LIMITS, bytes?: Uint8Array): JsonScan {
  if (text.length > limits.maxLength) throw tooLarge()
  begin(limits)
  const weight = walk(bytes ?? toBytes(text), limits)
  const later = run.newNames * NAME_WEIGHT + run.texts * ARRAY_TEXT_WEIGHT
  if (weight + later > limits.maxWeight) throw tooLarge()
  const exactWeight = weight * EXACT_COST + run.newNames * EXACT_NAME_WEIGHT
  return { plain: !run.odd, fractions: run.fractions, exactWeight }
}

/** Reading bytes takes a third of the time reading characters of a string takes. */
function toBytes(text: string): Uint8Array {
  if (text.length * 3 > run.encoded.length) return Buffer.from(text)
  const { written } = encoder.encodeInto(text, run.encoded)
  return run.encoded.subarray(0, written)
}

export function tooLarge(): JsonError {
  return new JsonError('limit', 'JSON document has too many parts to be read at once: split it')
}

function begin(limits: JsonLimits): void {
  run.first = run.next
  if (run.first > 0x3fffffff) {
    run.slots.fill(0)
    run.first = 1
    run.next = 1
  }
  if (limits.maxDepth > run.outer.length) run.outer = new Int32Array(limits.maxDepth)
  run.newNames = 0
  run.texts = 0
  run.quote = -1
  run.backslash = -1
  run.odd = false
  run.fractions = false
}

/** The weight without the names. Ends early, with `odd` set, where the text is too deep or cannot be JSON. */
function walk(bytes: Uint8Array, limits: JsonLimits): number {
  const length = bytes.length
  const outer = run.outer
  let depth = 0
  let objects = 0
  let owner = -1
  let expectKey = false
  let weight = 0
  for (let at = 0; at < length; at++) {
    const code = bytes[at] as number
    // The bit makes `[` look like `{` and `]` like `}`, and what else it mixes up is not JSON either way.
    switch (code | 0x20) {
      case 0x22: // "
        if (owner < 0) run.texts++
        at = expectKey ? scanKey(bytes, at + 1, owner) : skipString(bytes, at + 1)
        expectKey = false
        break
      case 0x2c: // ,
        weight++
        expectKey = owner >= 0
        break
      case 0x7b: // { [
        weight += CONTAINER_WEIGHT
        if (depth >= limits.maxDepth || weight > limits.maxWeight) return leave(weight)
        outer[depth++] = owner
        expectKey = code === 0x7b
        owner = expectKey ? objects++ : -1
        break
      case 0x7d: // } ]
        if (depth === 0) return leave(weight)
        owner = outer[--depth] as number
        expectKey = false
        break
      default:
        at = scanOther(bytes, at, code)
    }
  }
  return weight
}

function leave(weight: number): number {
  run.odd = true
  return weight
}

/** Blanks and numbers are passed over as a whole, anything else by itself. Returns the last index passed. */
function scanOther(bytes: Uint8Array, at: number, code: number): number {
  if (code <= 0x20) return skipSpace(bytes, at)
  return code <= 0x39 && (code >= 0x30 || code === 0x2d) ? scanNumber(bytes, at) : at
}

/** The index of the last of the blanks. */
function skipSpace(bytes: Uint8Array, start: number): number {
  const last = bytes.length - 1
  let at = start
  while (at < last && (bytes[at + 1] as number) <= 0x20) at++
  return at
}

/** The index of the quote that ends the string, or the end of the text. */
function skipString(bytes: Uint8Array, start: number): number {
  const { length } = bytes
  let at = start
  for (;;) {
    const stop = Math.min(at + SHORT_STRING, length)
    while (at < stop) {
      const code = bytes[at] as number
      if (code === 0x22) return at
      at += code === 0x5c ? skipEscape(bytes, at) : 1
    }
    if (at >= length) return length
    if (run.quote < at) run.quote = find(bytes, 0x22, at)
    if (run.backslash < at) run.backslash = find(bytes, 0x5c, at)
    if (run.quote < run.backslash) return run.quote
    at = run.backslash
  }
}

/** The length of the escape, as far as it matters. Half of a surrogate pair may stand alone. */
function skipEscape(bytes: Uint8Array, at: number): number {
  if (at + 2 < bytes.length && bytes[at + 1] === 0x75 && ((bytes[at + 2] as number) | 0x20) === 0x64) run.odd = true
  return 2
}

function find(bytes: Uint8Array, code: number, from: number): number {
  const found = bytes.indexOf(code, from)
  return found < 0 ? bytes.length : found
}

/** The index of the last character of the number. */
function scanNumber(bytes: Uint8Array, start: number): number {
  const negative = (bytes[start] as number) === 0x2d
  const first = negative ? start + 1 : start
  const end = skipDigits(bytes, first)
  if (end - first > SAFE_DIGITS || (negative && (bytes[first] as number) === 0x30)) run.odd = true
  if ((bytes[end] as number) !== 0x2e) return checkExponent(bytes, end)
  run.fractions = true
  return checkExponent(bytes, skipDigits(bytes, end + 1))
}

function skipDigits(bytes: Uint8Array, start: number): number {
  let at = start
  while (at < bytes.length && isDigit(bytes[at] as number)) at++
  return at
}

/** An exponent can exceed every double, so all of them are left to the exact parser. */
function checkExponent(bytes: Uint8Array, at: number): number {
  if (at < bytes.length && ((bytes[at] as number) | 0x20) === 0x65) run.odd = true
  return at - 1
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

/** Notes the key and whether its object has it already; returns the index of the quote that ends it. */
function scanKey(bytes: Uint8Array, start: number, owner: number): number {
  const length = bytes.length
  let hash = 0x811c9dc5 | 0
  let at = start
  for (; at < length; at++) {
    let code = bytes[at] as number
    if (code === 0x22) break
    if (code === 0x5c) {
      // \u and \/ give a key a second spelling; every other escape is the only way to write its character.
      code = (bytes[++at] as number) | 0
      if (code === 0x75 || code === 0x2f) run.odd = true
    }
    hash = Math.imul(hash ^ code, 0x01000193)
  }
  noteName(hash)
  noteKey(bytes, { start, end: at, owner, hash: spread(hash, owner) })
  return at
}

function noteName(hash: number): void {
  const slot = (hash ^ (hash >>> 14)) & (run.names.length - 1)
  if (run.names[slot] === hash) return
  run.names[slot] = hash
  run.newNames++
}

function spread(hash: number, owner: number): number {
  const mixed = Math.imul(hash ^ Math.imul(owner, 0x9e3779b1), 0x85ebca6b)
  return mixed ^ (mixed >>> 15)
}

interface Key {
  readonly start: number
  readonly end: number
  readonly owner: number
  readonly hash: number
}

function noteKey(bytes: Uint8Array, key: Key): void {
  if (run.odd) return
  const count = run.next - run.first
  if (count === run.hashes.length) {
    if (count === MAX_KEYS) return void (run.odd = true)
    growTable()
  }
  const { slots, hashes, owners, starts, first } = run
  const mask = slots.length - 1
  let slot = key.hash & mask
  // Keys made to collide would probe without end; they are not worth more than this.
  for (let probes = 0; probes < 64; probes++) {
    const index = (slots[slot] as number) - first
    if (index < 0) {
      slots[slot] = run.next++
      hashes[count] = key.hash
      owners[count] = key.owner
      starts[count] = key.start
      return
    }
    if (hashes[index] === key.hash && owners[index] === key.owner && sameKey(bytes, key, starts[index] as number)) break
    slot = (slot + 1) & mask
  }
  run.odd = true
}

function sameKey(bytes: Uint8Array, key: Key, other: number): boolean {
  const shift = other - key.start
  // The closing quote is compared too: it makes the lengths equal.
  for (let at = key.start; at <= key.end; at++) {
    if ((bytes[at] as number) !== (bytes[at + shift] as number)) return false
  }
  return true
}

function growTable(): void {
  const { hashes, first, next } = run
  const slots = new Int32Array(run.slots.length * 2)
  const mask = slots.length - 1
  for (let index = 0; index < next - first; index++) {
    let slot = (hashes[index] as number) & mask
    while (slots[slot] !== 0) slot = (slot + 1) & mask
    slots[slot] = first + index
  }
  run.slots = slots
  run.hashes = grown(run.hashes)
  run.owners = grown(run.owners)
  run.starts = grown(run.starts)
}

function grown(array: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(array.length * 2)
  larger.set(array)
  return larger
}
