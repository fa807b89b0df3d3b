/**
 * Parses an email address as Go's mail.ParseAddress: with or without a name (`Jane <jane@ex.io>`), alone or in a group.
 */

const ATOM = /^[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~\u0080-\u{10ffff}]+/u
const QUOTED = /^"(?:[^"\\\r\n]|\\[^\r\n])*"/
const LITERAL = /^\[[^[\]\\\r\n]*\]/

export function isEmailAddress(text: string): boolean {
  const reader = new Reader(text)
  if (reader.mailbox() && reader.atEnd()) return true
  // A group of one: `people: jane@ex.io;`.
  reader.rest = text
  reader.phrase()
  return reader.take(':') && reader.mailbox() && reader.take(';') && reader.atEnd()
}

class Reader {
  rest: string

  constructor(text: string) {
    this.rest = text
  }

  /** White space and comments. */
  skip(): void {
    for (;;) {
      this.rest = this.rest.replace(/^[ \t]+/, '')
      const comment = /^\((?:[^()\\]|\\.)*\)/.exec(this.rest)
      if (comment === null) return
      this.rest = this.rest.slice(comment[0].length)
    }
  }

  atEnd(): boolean {
    this.skip()
    return this.rest === ''
  }

  take(char: string): boolean {
    this.skip()
    if (!this.rest.startsWith(char)) return false
    this.rest = this.rest.slice(char.length)
    return true
  }

  /** The words of a name; may be empty. */
  phrase(): void {
    this.skip()
    for (let found = true; found; this.skip()) found = this.#eat(QUOTED) || this.#eat(ATOM) || this.#eat(/^\./)
  }

  /** An address, or a name and an address in angle brackets. */
  mailbox(): boolean {
    const start = this.rest
    if (this.#address()) return true
    this.rest = start
    this.phrase()
    return this.take('<') && this.#address() && this.take('>')
  }

  /** `local@domain`. */
  #address(): boolean {
    this.skip()
    const local = this.rest.startsWith('"') ? this.#eat(QUOTED) : this.#dotAtom()
    if (!local || !this.#eat(/^@/)) return false
    this.skip()
    return this.rest.startsWith('[') ? this.#eat(LITERAL) : this.#dotAtom()
  }

  #dotAtom(): boolean {
    if (!this.#eat(ATOM)) return false
    while (this.rest.startsWith('.')) {
      this.rest = this.rest.slice(1)
      if (!this.#eat(ATOM)) return false
    }
    return true
  }

  #eat(pattern: RegExp): boolean {
    const found = pattern.exec(this.rest)?.[0]
    if (found === undefined) return false
    this.rest = this.rest.slice(found.length)
    return true
  }
}
