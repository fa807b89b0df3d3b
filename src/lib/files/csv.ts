/** Parses comma-separated values, by the rules and with the error texts of Go's encoding/csv. */

/** The fields of the first record in `text`, blank lines skipped. Throws on stray quotes and when there is no record. */
export function readRecord(text: string): string[] {
  for (const { fields } of readRecords(text)) return fields
  throw new Error('EOF')
}

export interface CsvRecord {
  /** That it begins in, from 1. */
  readonly line: number
  readonly fields: string[]
}

/** Yields every record in `text`, without blank lines. Throws on stray quotes. */
export function* readRecords(text: string): Generator<CsvRecord> {
  const reader = new RecordReader(text)
  while (reader.begin()) {
    const { line } = reader
    const fields: string[] = []
    do fields.push(reader.field())
    while (reader.more)
    yield { line, fields }
  }
}

/** `fields` as one record, quoted only where reading it back needs that. */
export function writeRecord(fields: readonly string[]): string {
  return fields.map((field) => (needsQuotes(field) ? `"${field.replaceAll('"', '""')}"` : field)).join(',')
}

function needsQuotes(field: string): boolean {
  return field === '\\.' || /[",\r\n]/.test(field) || /^\s/u.test(field)
}

class RecordReader {
  readonly #lines: string[]
  readonly #endsInNewline: boolean
  /** That the record at hand begins in. */
  #firstLine = -1
  #line = -1
  /** Offset of the next unread character in the current line. */
  #at = 0
  /** Whether a comma was read last, so another field follows, perhaps an empty one. */
  more = false

  constructor(text: string) {
    const lines = text.replaceAll('\r\n', '\n').replace(/\r$/, '').split('\n')
    this.#endsInNewline = lines.at(-1) === ''
    this.#lines = this.#endsInNewline ? lines.slice(0, -1) : lines
  }

  /** Goes on to the next record; false when there is none. */
  begin(): boolean {
    do this.#line++
    while (this.#lines[this.#line] === '')
    this.#firstLine = this.#line
    this.#at = 0
    return this.#line < this.#lines.length
  }

  get line(): number {
    return this.#firstLine + 1
  }

  field(): string {
    return this.#current[this.#at] === '"' ? this.#quoted() : this.#plain()
  }

  get #current(): string {
    return this.#lines[this.#line] ?? ''
  }

  #plain(): string {
    const comma = this.#current.indexOf(',', this.#at)
    const field = this.#current.slice(this.#at, comma < 0 ? undefined : comma)
    const stray = field.indexOf('"')
    if (stray >= 0) throw this.#fail(this.#at + stray, 'bare " in non-quoted-field')
    this.#end(comma)
    return field
  }

  #quoted(): string {
    let field = ''
    this.#at++
    for (;;) {
      const close = this.#current.indexOf('"', this.#at)
      if (close < 0) {
        field += `${this.#current.slice(this.#at)}\n`
        this.#nextLine()
        continue
      }
      field += this.#current.slice(this.#at, close)
      const after = this.#current[close + 1]
      if (after !== undefined && after !== '"' && after !== ',') throw this.#fail(close, EXTRA_QUOTE)
      if (after !== '"') {
        this.#end(after === ',' ? close + 1 : -1)
        return field
      }
      field += '"'
      this.#at = close + 2
    }
  }

  #end(comma: number): void {
    this.more = comma >= 0
    this.#at = comma + 1
  }

  #nextLine(): void {
    if (this.#line + 1 >= this.#lines.length) {
      throw this.#fail(this.#current.length + (this.#endsInNewline ? 1 : 0), EXTRA_QUOTE)
    }
    this.#line++
    this.#at = 0
  }

  /** Columns are counted in bytes from 1, the newline included. */
  #fail(offset: number, why: string): Error {
    const column = Buffer.byteLength(`${this.#current}\n`.slice(0, offset)) + 1
    const where = `parse error on line ${this.#line + 1}, column ${column}: ${why}`
    return new Error(this.#line === this.#firstLine ? where : `record on line ${this.#firstLine + 1}; ${where}`)
  }
}

const EXTRA_QUOTE = 'extraneous or missing " in quoted-field'
