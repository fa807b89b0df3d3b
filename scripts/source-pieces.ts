/** Splits TypeScript sources into code, comments and strings, so that a check can look at one of them. */

/** `string` is also the text of a template or a regular expression. */
export interface Piece {
  readonly type: 'code' | 'comment' | 'string'
  readonly text: string
  readonly start: number
}

/** The code inside `${…}` of a template is code. */
export function splitSource(source: string): Piece[] {
  return new Splitter(source).split()
}

/** A slash after one of these begins a regular expression; after anything else it divides. */
const BEFORE_PATTERN = /(?:^|[(,=:[!&|?{};<>+\-*%~^]|\breturn|\bcase|\btypeof|=>)\s*$/
const PATTERN = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/y
const COMMENT = /\/\*[^]*?\*\/|\/\/.*/y
const STRING = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/y
/** Text of a template up to its end or the next `${`. */
const TEMPLATE = /(?:\\[^]|[^`\\$]|\$(?!\{))*(?:`|\$\{|$)/y
/** Characters that can begin something other than code. */
const SPECIAL = /[`'"/{}]/g

class Splitter {
  readonly #source: string
  readonly #pieces: Piece[] = []
  /** The number of open braces inside each open `${`. */
  readonly #braces: number[] = []
  #codeStart = 0
  #at = 0

  constructor(source: string) {
    this.#source = source
  }

  split(): Piece[] {
    for (;;) {
      SPECIAL.lastIndex = this.#at
      const next = SPECIAL.exec(this.#source)
      if (next === null) break
      this.#at = next.index
      this.#step(next[0])
    }
    this.#endCode(this.#source.length)
    return this.#pieces
  }

  #step(char: string): void {
    if (char === '`') this.#takeTemplate()
    else if (char === '{' || char === '}') this.#countBrace(char)
    else if (char !== '/') this.#take('string', STRING)
    else if (!this.#take('comment', COMMENT)) {
      const before = this.#source.slice(Math.max(0, this.#at - 20), this.#at)
      if (BEFORE_PATTERN.test(before)) this.#take('string', PATTERN)
      else this.#at++
    }
  }

  #countBrace(char: string): void {
    const open = this.#braces.pop()
    if (open === 0 && char === '}') this.#takeTemplate()
    else {
      if (open !== undefined) this.#braces.push(open + (char === '{' ? 1 : -1))
      this.#at++
    }
  }

  /** From a backtick, or from the brace that ends a `${…}`. */
  #takeTemplate(): void {
    this.#at++
    this.#take('string', TEMPLATE)
    if (this.#source.slice(this.#codeStart - 2, this.#codeStart) === '${') this.#braces.push(0)
  }

  /** Takes what the pattern matches here as a piece, or moves on by a character. */
  #take(type: Piece['type'], pattern: RegExp): boolean {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#source)
    if (match === null) {
      if (type !== 'comment') this.#at++
      return false
    }
    this.#endCode(this.#at)
    this.#pieces.push({ type, text: match[0], start: this.#at })
    this.#at = pattern.lastIndex
    this.#codeStart = this.#at
    return true
  }

  #endCode(end: number): void {
    const text = this.#source.slice(this.#codeStart, end)
    if (text !== '') this.#pieces.push({ type: 'code', text, start: this.#codeStart })
  }
}
