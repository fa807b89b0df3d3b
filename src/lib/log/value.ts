/** Formats values of log lines and masks secrets. */
const MASK = '--- REDACTED ---'

/** Holds a secret so that no log line, JSON, template string or inspection shows it. */
export class Redacted<T = string> {
  readonly #value: T

  constructor(value: T) {
    this.#value = value
  }

  /** The secret itself, for the one place that needs it. */
  reveal(): T {
    return this.#value
  }

  toString(): string {
    return MASK
  }

  toJSON(): string {
    return MASK
  }
}

/** Causes below causes are shown this deep: enough for every honest chain, and an end to one that bites its tail. */
const MAX_CAUSES = 8

/** The message followed by those of its causes, like a wrapped Go error. Repeated texts are omitted. */
export function errorText(error: unknown, depth: number = 0): string {
  if (!(error instanceof Error)) return String(error)
  const text = error.message === '' ? error.name : error.message
  if (depth === MAX_CAUSES) return text
  const inner = innerTexts(error, depth).filter((each) => !containsText(text, each))
  if (inner.length === 0) return text
  return `${text}: ${inner.length === 1 ? inner[0] : `[${inner.join(', ')}]`}`
}

/** As wrappers repeat what they wrap: after a colon, or as one of a list. */
function containsText(text: string, part: string): boolean {
  return text.endsWith(`: ${part}`) || text.split('; ').includes(part)
}

function innerTexts(error: Error, depth: number): string[] {
  const inner: unknown[] = error instanceof AggregateError ? error.errors : []
  const causes = error.cause === undefined || inner.includes(error.cause) ? inner : [error.cause, ...inner]
  return causes.map((cause) => errorText(cause, depth + 1))
}

/** The text of a value whose class defines one; undefined for arrays, plain objects and others. */
export function textOf(value: object): string | undefined {
  const { toString } = value as { toString?: unknown }
  if (typeof toString !== 'function' || toString === Object.prototype.toString || Array.isArray(value)) return undefined
  return String(toString.call(value))
}

/** JSON of any value: big integers as numbers, maps as objects, sets as lists, bytes in base64. Throws on a cycle. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, plainer) ?? 'null'
}

/** ES2025 has it, the types do not yet. */
const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => object }

/** Called by JSON.stringify with the holder as `this` and what `toJSON` made of the value. */
function plainer(this: unknown, key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return rawJSON(String(value))
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Map) return Object.fromEntries(value)
  if (value instanceof Set) return [...value]
  if (value instanceof Error) return errorText(value)
  const original = (this as Record<string, unknown>)[key]
  return original instanceof Uint8Array ? Buffer.from(original).toString('base64') : value
}
