/**
 * Parses simple YAML, as programs write kubeconfigs. Any other text is left to the full parser, which takes twenty
 * milliseconds to load.
 */
import { type JsonObject, type JsonValue, setMember } from '../json/value.ts'

interface Line {
  readonly indent: number
  readonly isItem: boolean
  readonly key: string
  readonly value: string | undefined
}

const LINE = /^( {0,40})(- )?([a-zA-Z][\w.-]*):(?: (\S+))?$/
/** Text that is certainly a plain string: no leading digit or sign, and no character with a meaning within a line. */
const WORD = /^[a-zA-Z/](?:[\w+/=.:@-]*[\w+/=.@-])?$/
/** Words of YAML 1.1 that are not text. */
const MEANT = /^(?:y|n|yes|no|on|off|true|false|null)$/i

const CONSTANTS: Readonly<Record<string, () => JsonValue>> = {
  true: () => true,
  false: () => false,
  '{}': () => ({}),
  '[]': () => [],
}

/** The result of `parseYaml` for the same text; undefined if this simple parser cannot determine it. */
export function parseSimpleYaml(text: string): JsonObject | undefined {
  const lines: Line[] = []
  for (const line of text.replace(/\n$/, '').split('\n')) {
    const read = lineOf(line)
    if (read === undefined) return undefined
    lines.push(read)
  }
  const reader = new Reader(lines)
  const found = reader.mapping(0)
  return reader.isDone ? found : undefined
}

function lineOf(line: string): Line | undefined {
  const [, blanks, dash, key, value] = LINE.exec(line) ?? []
  if (blanks === undefined || key === undefined || MEANT.test(key)) return undefined
  const isItem = dash !== undefined
  return { indent: blanks.length + (isItem ? 2 : 0), isItem, key, value }
}

/** Gives up by returning undefined. */
class Reader {
  readonly #lines: readonly Line[]
  #at = 0

  constructor(lines: readonly Line[]) {
    this.#lines = lines
  }

  get isDone(): boolean {
    return this.#at === this.#lines.length
  }

  /** Its first line may begin an item. */
  mapping(indent: number): JsonObject | undefined {
    const found: JsonObject = {}
    for (let isFirst = true; ; isFirst = false) {
      const line = this.#lines[this.#at]
      if (line === undefined || line.indent !== indent || (line.isItem && !isFirst)) return isFirst ? undefined : found
      this.#at++
      const value = line.value === undefined ? this.#below(indent) : scalarOf(line.value)
      if (value === undefined || Object.hasOwn(found, line.key)) return undefined
      setMember(found, line.key, value)
    }
  }

  #below(indent: number): JsonValue | undefined {
    const next = this.#lines[this.#at]
    if (next === undefined) return undefined
    // The dash of an item may stand below the key itself.
    if (next.isItem) return next.indent - 2 >= indent ? this.#list(next.indent) : undefined
    return next.indent > indent ? this.mapping(next.indent) : undefined
  }

  #list(indent: number): JsonValue[] | undefined {
    const found: JsonValue[] = []
    for (;;) {
      const line = this.#lines[this.#at]
      if (line === undefined || !line.isItem || line.indent !== indent) return found
      const item = this.mapping(indent)
      if (item === undefined) return undefined
      found.push(item)
    }
  }
}

function scalarOf(text: string): JsonValue | undefined {
  const constant = Object.hasOwn(CONSTANTS, text) ? CONSTANTS[text] : undefined
  if (constant !== undefined) return constant()
  return WORD.test(text) && !MEANT.test(text) ? text : undefined
}
