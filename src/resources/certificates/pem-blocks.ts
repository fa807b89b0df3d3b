/**
 * Parses PEM blocks like Go's encoding/pem: malformed parts count as text between blocks, not as errors. Validation
 * counts blocks, so it must find the same ones.
 */

export interface FoundBlock {
  readonly label: string
  readonly hasHeaders: boolean
  readonly bytes: Buffer
}

const BEGIN = '-----BEGIN '
const END = '-----END '
const DASHES = '-----'

/** In order. Each search continues after the previous one, so the cost is linear. */
export function* findPemBlocks(text: string): Generator<FoundBlock> {
  let at = 0
  for (;;) {
    const start = startOfLine(text, BEGIN, at)
    if (start < 0) return
    const [line, bodyStart] = readLine(text, start)
    at = bodyStart
    if (!line.endsWith(DASHES) || line.length < BEGIN.length + DASHES.length) continue
    const label = line.slice(BEGIN.length, -DASHES.length)
    const [hasHeaders, base64Start] = skipHeaders(text, bodyStart)
    const end = startOfLine(text, END, base64Start)
    if (end < 0) return
    const [closing, afterBlock] = readLine(text, end)
    if (closing !== `${END}${label}${DASHES}`) continue
    const bytes = decode(text.slice(base64Start, end))
    if (bytes === undefined) continue
    at = afterBlock
    yield { label, hasHeaders, bytes }
  }
}

/** The position of a line that begins with `mark`; negative if there is none. */
function startOfLine(text: string, mark: string, from: number): number {
  if (text.startsWith(mark, from) && (from === 0 || text[from - 1] === '\n')) return from
  const before = text.indexOf(`\n${mark}`, Math.max(from - 1, 0))
  return before < 0 ? -1 : before + 1
}

/** A line without trailing white space, and the position of the next. */
function readLine(text: string, from: number): readonly [line: string, next: number] {
  const end = text.indexOf('\n', from)
  return end < 0 ? [text.slice(from).trimEnd(), text.length] : [text.slice(from, end).trimEnd(), end + 1]
}

/** `Key: value` lines; they end at the first other line. */
function skipHeaders(text: string, from: number): readonly [hasHeaders: boolean, next: number] {
  let at = from
  for (;;) {
    const [line, next] = readLine(text, at)
    if (!line.includes(':') || at === next) return [at > from, at]
    at = next
  }
}

function decode(body: string): Buffer | undefined {
  const compact = body.replaceAll(/[ \t\r\n]+/g, '')
  const isBase64 = compact.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(compact)
  return isBase64 ? Buffer.from(compact, 'base64') : undefined
}
