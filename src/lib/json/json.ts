/**
 * Parses and writes JSON as Go's encoding/json and sigs.k8s.io/json do: exact int64, Go's error texts, repeated keys
 * reported, `<`, `>` and `&` escaped. It uses JSON.parse and JSON.stringify if they give the same result, and exact.ts
 * and write.ts otherwise.
 */

import type { Steps } from '../time-slicing.ts'
import { parseExactJson } from './exact.ts'
import { DEFAULT_JSON_LIMITS, type JsonLimits, type JsonScan, scanJson, tooLarge } from './scan.ts'
import type { JsonDuplicate, JsonValue } from './value.ts'
import { escapeLikeGo, type WriteOptions, writeJson } from './write.ts'

export interface JsonParseOptions {
  /**
   * Keep the text of every number that is not written as an int64 (`1.0`, `1e2`, `9223372036854775808`) in a
   * `JsonNumber`. Without it such a number is a plain one, and one beyond all doubles an error. `-0` is 0 either way.
   */
  readonly exactNumbers?: boolean
  /** Takes the keys given more than once (100 at most, each path once), in order of appearance. */
  readonly duplicates?: JsonDuplicate[]
  readonly limits?: JsonLimits
}

/**
 * Reads one JSON document. Integers that a double cannot hold are bigints up to int64; beyond, Go has doubles, and so
 * have we. Invalid UTF-8 and lone surrogates become U+FFFD. `__proto__` is a key like any other. Of repeated keys the
 * last counts. Throws a JsonError; see its codes.
 */
export function parseJson(input: string | Buffer, options: JsonParseOptions = {}): JsonValue {
  const limits = options.limits ?? DEFAULT_JSON_LIMITS
  return parseScanned(typeof input === 'string' ? scanText(input, limits) : scanBytes(input, limits), options, limits)
}

/** The same in two steps, each of which may take long for a large document. */
export function* parseJsonInSteps(input: Buffer, options: JsonParseOptions = {}): Steps<JsonValue> {
  const limits = options.limits ?? DEFAULT_JSON_LIMITS
  const scanned = scanBytes(input, limits)
  yield
  return parseScanned(scanned, options, limits)
}

interface Scanned {
  readonly text: string
  readonly scan: JsonScan
}

function parseScanned({ text, scan }: Scanned, options: JsonParseOptions, limits: JsonLimits): JsonValue {
  const exactNumbers = options.exactNumbers ?? false
  if (scan.plain && !(scan.fractions && exactNumbers)) {
    const value = tryNative(text)
    if (value !== undefined) return value
  }
  if (scan.exactWeight > limits.maxWeight) throw tooLarge()
  const { value, duplicates } = parseExactJson(text, { exactNumbers, maxDepth: limits.maxDepth })
  options.duplicates?.push(...duplicates)
  return value
}

/** More digits than a double is sure to hold. */
const LONG_NUMBER = /\d{16}/

/**
 * Reads what a program wrote that is trusted to write JSON: a server that was verified. As `parseJson`, at a fraction of the
 * cost, but for what such a program does not write: repeated keys count as one, and nothing is too large or too deep.
 */
export function readJson(input: Buffer): JsonValue {
  const text = input.toString('utf8')
  if (LONG_NUMBER.test(text)) return parseJson(text, { limits: UNLIMITED })
  return tryNative(text) ?? parseJson(text, { limits: UNLIMITED })
}

const UNLIMITED: JsonLimits = { ...DEFAULT_JSON_LIMITS, maxLength: Infinity, maxWeight: Infinity }

function scanText(input: string, limits: JsonLimits): Scanned {
  const text = input.isWellFormed() ? input : input.toWellFormed()
  return { text, scan: scanJson(text, limits) }
}

function scanBytes(bytes: Buffer, limits: JsonLimits): Scanned {
  if (bytes.length > limits.maxLength * 3) throw tooLarge()
  const text = bytes.toString('utf8')
  return { text, scan: scanJson(text, limits, bytes) }
}

/** Undefined when the text is not JSON: the exact parser can say why, in Go's words. */
function tryNative(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return undefined
  }
}

/**
 * Writes a value as Go's encoder does. Members that are undefined are left out. Throws a JsonError with code `value`
 * for a value that contains itself.
 */
export function stringifyJson(value: unknown, options: WriteOptions = {}): string {
  if (options.sortedKeys) return writeJson(value, options)
  const text = tryStringify(value, options.indent)
  return text === undefined ? writeJson(value, options) : escapeLikeGo(text)
}

/** Undefined for a bigint, and for a nesting that is too deep for the machine's stack. */
function tryStringify(value: unknown, indent?: number): string | undefined {
  try {
    const text: string | undefined = JSON.stringify(value, undefined, indent)
    return text ?? 'null'
  } catch {
    return undefined
  }
}
