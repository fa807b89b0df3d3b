/**
 * Paths of requests: the form that rules match, and the form that is sent. A path is decoded once and, where it was rewritten,
 * encoded once, as nginx does it. Pure.
 */

/**
 * Decoded, without dots and double slashes, so that no way of writing a path leads past the rule that is for it. Undefined for
 * a path that leads above the root, or that is none.
 */
export function normalPath(path: string): string | undefined {
  if (!path.startsWith('/')) return undefined
  let text: string
  try {
    text = decodeURIComponent(path)
  } catch {
    return undefined
  }
  if (text.includes('\0')) return undefined
  const parts: string[] = []
  for (const part of text.split('/')) {
    if (part === '' || part === '.') continue
    if (part !== '..') parts.push(part)
    else if (parts.pop() === undefined) return undefined
  }
  const isFolder = /(?:\/|\/\.|\/\.\.)$/.test(text)
  return parts.length === 0 ? '/' : `/${parts.join('/')}${isFolder ? '/' : ''}`
}

/** Before the first question mark, and from it on. */
export function splitTarget(target: string): [path: string, query: string] {
  const at = target.indexOf('?')
  return at < 0 ? [target, ''] : [target.slice(0, at), target.slice(at)]
}

/** The target of a request whose bytes, one for each character, may all stand in a request line. Clients of HTTP/2 send any. */
export function sendable(target: string): string {
  return target.replaceAll(NOT_SENDABLE, (character) => percent(Buffer.from(character, 'latin1')))
}

const NOT_SENDABLE = /[^\x21-\x7e]/g

/**
 * The target that rewriting makes of a path: `$1` is the first group. The groups are of the decoded path, so that everything with a
 * meaning in a target is encoded again. A query of the rewriting comes before that of the request; one that is nothing but `?`
 * takes that away.
 */
export function rewrittenTarget(rewriting: string, groups: readonly (string | undefined)[], query: string): string {
  const filled = (text: string, illegal: RegExp): string =>
    text.replaceAll(/\$(\d)/g, (_, digit: string) => (groups[Number(digit)] ?? '').replaceAll(illegal, encoded))
  const [path, added] = splitTarget(rewriting)
  const whole = filled(path, NOT_OF_PATHS)
  const target = (whole.startsWith('/') ? whole : `/${whole}`).replaceAll(NOT_ASCII, encoded)
  if (added === '') return `${target}${query}`
  const own = filled(added, NOT_OF_QUERIES).replaceAll(NOT_ASCII, encoded)
  if (own.endsWith('?')) return `${target}${own.slice(0, -1)}`
  return query.length > 1 ? `${target}${own}&${query.slice(1)}` : `${target}${own}`
}

const NOT_ASCII = /[^\x21-\x7e]/gu
/** All but the characters that RFC 3986 has in a path. */
const NOT_OF_PATHS = /[^\w\-.~!$&'()*+,;=:@/]/gu
/** The same without those that part one value of a query from the next. */
const NOT_OF_QUERIES = /[^\w\-.~!$'()*,;:@/]/gu

/** Half of a pair of UTF-16 is no character, and becomes the one that stands for such. */
function encoded(character: string): string {
  return percent(Buffer.from(character))
}

function percent(bytes: Buffer): string {
  return [...bytes].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
}
