/**
 * A parser of protobuf's text format, in which cel-spec's data is written. It has no schema: every field is a list.
 */

export interface Message {
  readonly [field: string]: readonly Field[]
}

/** Strings stay bytes, which only a schema could tell from text; numbers and names stay as they are written. */
export type Field = Message | Buffer | string

const TOKEN =
  /[ \t\r\n]+|#[^\n]*|(?<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?<mark>[{}<>[\]:,;])|(?<word>[^\s{}<>[\]:,;"'#]+)/gsy

export function parseTextproto(source: string): Message {
  const tokens = [...source.matchAll(TOKEN)].flatMap(({ groups }) => groups?.text ?? groups?.mark ?? groups?.word ?? [])
  const reader = new Reader(tokens)
  return reader.message(undefined)
}

class Reader {
  readonly #tokens: readonly string[]
  #at = 0

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens
  }

  /** Up to `end`, or to the end of all. */
  message(end: string | undefined): Message {
    const fields: Record<string, Field[]> = {}
    for (;;) {
      const token = this.#next()
      if (token === end) return fields
      if (token === undefined) throw new Error('A message has no end')
      if (token === ',' || token === ';') continue
      const name = token === '[' ? this.#extension() : token
      if (this.#peek() === ':') this.#next()
      ;(fields[name] ??= []).push(...this.#values())
    }
  }

  #values(): Field[] {
    if (this.#peek() !== '[') return [this.#value()]
    this.#next()
    const values: Field[] = []
    while (this.#peek() !== ']') {
      values.push(this.#value())
      if (this.#peek() === ',') this.#next()
    }
    this.#next()
    return values
  }

  #value(): Field {
    const token = this.#next() ?? ''
    if (token === '{') return this.message('}')
    if (token === '<') return this.message('>')
    if (!isText(token)) return token
    const parts = [unescape(token)]
    // Texts that follow each other are one.
    while (isText(this.#peek())) parts.push(unescape(this.#next() as string))
    return Buffer.concat(parts)
  }

  /** `type.googleapis.com/some.Type`, whose bracket is open. */
  #extension(): string {
    let name = ''
    for (let token = this.#next(); token !== ']'; token = this.#next()) name += token
    return name
  }

  #peek(): string | undefined {
    return this.#tokens[this.#at]
  }

  #next(): string | undefined {
    return this.#tokens[this.#at++]
  }
}

function isText(token: string | undefined): boolean {
  return token?.startsWith('"') === true || token?.startsWith("'") === true
}

const ESCAPE = /\\(?:x([\da-fA-F]{1,2})|([0-7]{1,3})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|(.))/gs
const SIMPLE: Readonly<Record<string, string>> = { a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }

function unescape(token: string): Buffer {
  const text = token.slice(1, -1)
  const parts: Buffer[] = []
  let at = 0
  for (const { index, 0: whole, 1: hex, 2: octal, 3: short, 4: long, 5: other } of text.matchAll(ESCAPE)) {
    parts.push(Buffer.from(text.slice(at, index)))
    at = index + whole.length
    const byte = hex === undefined ? octal && Number.parseInt(octal, 8) : Number.parseInt(hex, 16)
    const point = short ?? long
    if (typeof byte === 'number') parts.push(Buffer.from([byte]))
    else if (point !== undefined) parts.push(Buffer.from(String.fromCodePoint(Number.parseInt(point, 16))))
    else parts.push(Buffer.from(SIMPLE[other ?? ''] ?? other ?? ''))
  }
  return Buffer.concat([...parts, Buffer.from(text.slice(at))])
}
