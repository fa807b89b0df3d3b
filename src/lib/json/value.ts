/**
 * Types of JSON values in memory. They are plain JavaScript values, except for integers beyond a double's precision,
 * which are bigints. So every int64 survives a round trip.
 */

/** A JSON value. Objects may hold any key, `__proto__` included, as an own property: read them with `Object.hasOwn`. */
export type JsonValue = null | boolean | number | bigint | string | JsonNumber | JsonValue[] | JsonObject

export interface JsonObject {
  [key: string]: JsonValue
}

/** A number kept in its written form, for callers that check integers by their text (`1.0` and `1e2` are none). */
export class JsonNumber {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  /** The nearest double; an infinity when the exponent is beyond its range. */
  valueOf(): number {
    return Number(this.text)
  }

  toString(): string {
    return this.text
  }

  /** The text itself, so that a number that was only passed on is written as it came. */
  toJSON(): unknown {
    return rawJson(this.text)
  }
}

/** `JSON.rawJSON` is in every runtime this program runs on; the type library does not know it yet. */
const { rawJSON: rawJson } = JSON as unknown as { rawJSON(this: void, text: string): unknown }

/**
 * Why text was refused. `syntax`: not JSON, in the words of Go's encoding/json. `depth`: nested too deep. `limit`: too
 * big or too costly to read at once. `number`: no double holds it. `value`: JSON cannot express the value (writing).
 */
export type JsonErrorCode = 'syntax' | 'depth' | 'limit' | 'number' | 'value'

export class JsonError extends Error {
  readonly code: JsonErrorCode
  /** Where in the text (in UTF-16 units) the offence is; -1 when it is not in one place. */
  readonly offset: number

  constructor(code: JsonErrorCode, message: string, offset = -1) {
    super(message)
    this.name = 'JsonError'
    this.code = code
    this.offset = offset
  }
}

/** A key given more than once in one object. The last value counts, as in Go. */
export interface JsonDuplicate {
  /** In the form Kubernetes prints: `data.a`, `spec.containers[0].name`. */
  readonly path: string
  /** The path of the object that holds the key; '' for the root. */
  readonly parent: string
  /** How many different keys of that object came before the repetition: tells where among its other offences it belongs. */
  readonly before: number
}

/** Sets a member even when the key is `__proto__`, which plain assignment would take for the prototype. */
export function setMember(object: JsonObject, key: string, value: JsonValue): void {
  if (key === '__proto__') {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
  } else {
    object[key] = value
  }
}

/** Whether the value is a JSON object: not null, no array, no kept number. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof JsonNumber)
}
