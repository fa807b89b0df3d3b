/** Splits a Go template into tokens: text outside of `{{` and `}}`, and words, literals and operators inside. */
import { goQuote, isPrintable } from '#lib/go/text.ts'

export type TokenType =
  | 'error'
  | 'eof'
  | 'text'
  | 'left'
  | 'right'
  | 'space'
  | 'assign'
  | 'declare'
  | 'pipe'
  | 'char'
  | 'string'
  | 'raw'
  | 'variable'
  | 'field'
  | 'dot'
  | 'number'
  | 'rune'
  | 'bool'
  | 'identifier'
  | 'keyword'
  | 'open'
  | 'close'

export interface Token {
  readonly type: TokenType
  /** The source text; for an error, its message. */
  readonly text: string
  readonly at: number
  readonly line: number
}

const KEYWORDS = new Set('block break continue define else end if nil range template with'.split(' '))

const TRIM_LEFT = /-[ \t\r\n]/y
const RIGHT = /\}\}/y
const RIGHT_TRIMMED = /[ \t\r\n]-\}\}/y
const SPACES = /[ \t\r\n]+/y
const COMMENT = /\/\*[^]*?\*\//y
const COMMENT_START = /\/\*/y
const AFTER_WORD = /(?=[ \t\r\n.,|:()]|\}\}|$)/y
const STRING = /"(?:[^"\\\n]|\\[^\n])*"/y
const RAW = /`[^`]*`/y
const RUNE = /'(?:[^'\\\n]|\\[^\n])*'/y
const NAME = /[.$]?[_\p{L}\p{Nd}]*/uy
const NUMBER_START = /(?=[+\-\d]|\.\d)/y
const NUMBER =
  /[+-]?(?:0[xX][\da-fA-F_]*(?:\.[\da-fA-F_]*)?(?:[pP][+-]?[\d_]*)?|0[oO][0-7_]*|0[bB][01_]*|[\d_]*(?:\.[\d_]*)?(?:[eE][+-]?[\d_]*)?)i?/y

/** All tokens up to the end or the first error, which comes last. */
export function tokenize(source: string): Token[] {
  return new Lexer(source).run()
}

class Lexer {
  readonly #source: string
  readonly #tokens: Token[] = []
  #at = 0
  #line = 1
  #depth = 0

  constructor(source: string) {
    this.#source = source
  }

  run(): Token[] {
    while (this.#readText() && this.#readAction()) {}
    return this.#tokens
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#source)?.[0]
    this.#at += found?.length ?? 0
    return found
  }

  #looksAt(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at
    return pattern.test(this.#source)
  }

  #emit(type: TokenType, text: string, at = this.#at - text.length): void {
    this.#tokens.push({ type, text, at, line: this.#line })
    this.#line += type === 'error' ? 0 : newlines(text)
  }

  #fail(message: string, at: number): false {
    this.#emit('error', message, at)
    return false
  }

  /** False at the end of the input. */
  #readText(): boolean {
    const start = this.#at
    const found = this.#source.indexOf('{{', start)
    const end = found < 0 ? this.#source.length : found
    this.#at = end + 2
    const raw = this.#source.slice(start, end)
    const text = found >= 0 && this.#looksAt(TRIM_LEFT) ? raw.replace(/[ \t\r\n]+$/, '') : raw
    this.#at = end
    if (text !== '') this.#emit('text', text, start)
    this.#line += newlines(raw.slice(text.length))
    if (found >= 0) return true
    this.#emit('eof', '', end)
    return false
  }

  /** False after an error. */
  #readAction(): boolean {
    const start = this.#at
    this.#at += 2
    const marker = this.#take(TRIM_LEFT) ?? ''
    if (this.#looksAt(COMMENT_START)) return this.#readComment()
    this.#emit('left', '{{', start)
    this.#line += newlines(marker)
    this.#depth = 0
    for (;;) {
      if (this.#looksAt(RIGHT) || this.#looksAt(RIGHT_TRIMMED)) {
        if (this.#depth > 0) return this.#fail('unclosed left paren', this.#at)
        this.#readRight()
        return true
      }
      if (!this.#readInside()) return false
    }
  }

  #readRight(): void {
    const trims = this.#take(RIGHT) === undefined
    if (trims) this.#take(RIGHT_TRIMMED)
    this.#emit('right', '}}')
    if (trims) this.#line += newlines(this.#take(SPACES) ?? '')
  }

  #readComment(): boolean {
    const start = this.#at
    const comment = this.#take(COMMENT)
    if (comment === undefined) return this.#fail('unclosed comment', start)
    this.#line += newlines(comment)
    const trims = this.#take(RIGHT) === undefined
    if (trims && this.#take(RIGHT_TRIMMED) === undefined) {
      return this.#fail('comment ends before closing delimiter', start)
    }
    if (trims) this.#line += newlines(this.#take(SPACES) ?? '')
    return true
  }

  #readInside(): boolean {
    const start = this.#at
    const point = this.#source.codePointAt(start)
    if (point === undefined) return this.#fail('unclosed action', start)
    const char = String.fromCodePoint(point)
    if (SPACE.has(char)) return this.#readSpace()
    if (char === '"' || char === '`' || char === "'") return this.#readQuoted(char)
    if (this.#looksAt(NUMBER_START)) return this.#readNumber()
    if (char === '.' || char === '$' || /^[_\p{L}\p{Nd}]$/u.test(char)) return this.#readWord(char)
    return this.#readMark(char)
  }

  #readSpace(): boolean {
    const start = this.#at
    this.#take(SPACES)
    // The last space may belong to a trim marker.
    this.#at--
    if (!this.#looksAt(RIGHT_TRIMMED)) this.#at++
    if (this.#at > start) this.#emit('space', this.#source.slice(start, this.#at), start)
    return true
  }

  #readQuoted(quote: string): boolean {
    const [pattern, type, name] = QUOTED[quote] as (typeof QUOTED)[string]
    const found = this.#take(pattern)
    if (found === undefined) return this.#fail(`unterminated ${name}`, this.#at)
    this.#emit(type, found)
    return true
  }

  #readNumber(): boolean {
    const start = this.#at
    const text = this.#take(NUMBER) ?? ''
    const next = this.#source.codePointAt(this.#at)
    const follows = next === undefined ? '' : String.fromCodePoint(next)
    if (/^[_\p{L}\p{Nd}]$/u.test(follows) || follows === '+' || follows === '-') {
      return this.#fail(`bad number syntax: ${goQuote(text + follows)}`, start)
    }
    this.#emit('number', text, start)
    return true
  }

  #readWord(first: string): boolean {
    const start = this.#at
    const word = this.#take(NAME) ?? ''
    if (!this.#looksAt(AFTER_WORD)) return this.#fail(`bad character ${unicodeName(this.#charHere())}`, start)
    this.#emit(typeOfWord(word, first), word, start)
    return true
  }

  #charHere(): string {
    return String.fromCodePoint(this.#source.codePointAt(this.#at) ?? 0)
  }

  #readMark(char: string): boolean {
    const start = this.#at
    this.#at += char.length
    if (char === ':') {
      if (this.#source[this.#at++] !== '=') return this.#fail('expected :=', start)
      this.#emit('declare', ':=')
      return true
    }
    if (char === '(') this.#depth++
    if (char === ')' && --this.#depth < 0) return this.#fail('unexpected right paren', start)
    const type = MARKS[char] ?? (/^[ -~]$/.test(char) ? 'char' : undefined)
    if (type === undefined) return this.#fail(`unrecognized character in action: ${unicodeName(char)}`, start)
    this.#emit(type, char)
    return true
  }
}

const SPACE = new Set([' ', '\t', '\r', '\n'])
const MARKS: Readonly<Record<string, TokenType>> = { '=': 'assign', '|': 'pipe', '(': 'open', ')': 'close' }
const QUOTED: Readonly<Record<string, readonly [RegExp, TokenType, string]>> = {
  '"': [STRING, 'string', 'quoted string'],
  '`': [RAW, 'raw', 'raw quoted string'],
  "'": [RUNE, 'rune', 'character constant'],
}

function typeOfWord(word: string, first: string): TokenType {
  if (first === '$') return 'variable'
  if (first === '.') return word === '.' ? 'dot' : 'field'
  if (KEYWORDS.has(word)) return 'keyword'
  return word === 'true' || word === 'false' ? 'bool' : 'identifier'
}

function newlines(text: string): number {
  return text.split('\n').length - 1
}

/** The form in messages. */
export function tokenName({ type, text }: Token): string {
  if (type === 'eof') return 'EOF'
  if (type === 'error') return text
  if (type === 'keyword') return `<${text}>`
  const runes = Array.from(text)
  return runes.length > 10 ? `${goQuote(runes.slice(0, 10).join(''))}...` : goQuote(text)
}

/** Go's `%#U`: the code point, and the character if it is printable. */
function unicodeName(char: string): string {
  const number = `U+${(char.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')}`
  return isPrintable(char) ? `${number} '${char}'` : number
}
