/**
 * Parses request targets of `kubectl proxy`. `readingsOf` returns every path as which a server could decode the target,
 * so that no encoding bypasses a filter. Pure.
 */

export interface RequestTarget {
  /** The host of an absolute target (`GET http://host/path`); undefined for a plain path. */
  readonly authority?: string
  /** As the client sent it, nothing decoded. */
  readonly path: string
  /** With its question mark; empty without a query. */
  readonly query: string
}

/** Splits a request target. Returns undefined for a target that is neither a path nor an absolute URL. */
export function targetOf(text: string): RequestTarget | undefined {
  const mark = text.indexOf('?')
  const before = mark < 0 ? text : text.slice(0, mark)
  const query = mark < 0 ? '' : text.slice(mark)
  if (before.startsWith('/')) return { path: before, query }
  const [, named, path = ''] = /^[a-z][a-z\d+.-]*:\/\/([^/]*)(\/.*)?$/is.exec(before) ?? []
  if (named === undefined) return undefined
  return { authority: named.slice(named.lastIndexOf('@') + 1), path, query }
}

/** Percent-encodes the characters that a URL may not contain. The server still decodes the same path. */
export function sendable(text: string): string {
  // node:http gives the bytes of a target one character each.
  return text.replaceAll(
    /[^\x21-\x7e]|[\\#"<>^`{|}]/g,
    (one) => `%${one.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`,
  )
}

export interface Readings {
  /** An accepted request has only paths that `--accept-paths` matches. */
  readonly toAccept: readonly string[]
  /** A request is rejected when `--reject-paths` matches one of these paths. */
  readonly toReject: readonly string[]
}

/** Paths with more encodings or readings have no legitimate use, and each reading costs time. */
const MAX_ROUNDS = 8
const MAX_READINGS = 64

/**
 * The paths for the filters: the path decoded, once and again, each time also without dot segments, with backslashes as
 * slashes and without parameters (`;a=b`). `malformed`: an escape sequence is broken, as in `/%zz`. `hidden`: dot
 * segments climb above the root, or there are too many readings.
 */
export function readingsOf(path: string): Readings | 'malformed' | 'hidden' {
  if (/%(?![\da-f]{2})/i.test(path)) return 'malformed'
  const readings = new Set<string>()
  let texts = normalizedForms(sendable(path))
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const forms = texts?.map((text) => normalizedForms(decodeOnce(text)))
    if (forms === undefined || forms.includes(undefined)) return 'hidden'
    texts = [...new Set((forms as string[][]).flat())].filter((text) => !readings.has(text))
    if (texts.length === 0) return { toAccept: [...readings], toReject: [...readings].flatMap(looserReadings) }
    for (const text of texts) readings.add(text)
    if (readings.size > MAX_READINGS) return 'hidden'
  }
  return 'hidden'
}

/** The text and its forms without dot segments. Undefined: dot segments climb above the root. */
function normalizedForms(text: string): string[] | undefined {
  const dotted = text.replaceAll(/%2e/gi, '.')
  const slashed = [dotted, dotted.replaceAll(/\\|%5c/gi, '/')]
  const cleaned = slashed.flatMap((one) => [one, one.replaceAll(/;[^/]*/g, '')]).map(cleanedPath)
  return cleaned.includes(undefined) ? undefined : [text, ...(cleaned as string[])]
}

/** A server may ignore a slash at the end or a line break, and a server that decodes twice finds a query in `%3F`. */
function looserReadings(path: string): string[] {
  const [whole = ''] = path.split(/[?#\0]/)
  const texts = [path, ...[path, whole].map((text) => text.replaceAll(/[\r\n]/g, ''))]
  return [...new Set(texts.flatMap((text) => (text.length > 1 ? [text, text.replace(/\/$/, '')] : [text])))]
}

/** Bytes that are no UTF-8 become replacement characters, as Go's regular expressions read them. */
function decodeOnce(text: string): string {
  return text.replaceAll(/(?:%[\da-f]{2})+/gi, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString())
}

/** Without empty and dot segments; a slash at the end stays. Undefined: `..` climbs above the root. */
function cleanedPath(path: string): string | undefined {
  const kept: string[] = []
  const segments = path.split('/')
  for (const segment of segments) {
    if (segment === '' || segment === '.') continue
    if (segment !== '..') kept.push(segment)
    else if (kept.pop() === undefined) return undefined
  }
  const isFolder = ['', '.', '..'].includes(segments.at(-1) ?? '')
  return `/${kept.join('/')}${isFolder && kept.length > 0 ? '/' : ''}`
}
