/**
 * Decodes request paths for matching and encodes them for sending. A path is decoded once and, after rewriting, encoded
 * once, as nginx. Pure.
 */

/**
 * Decoded, without dot segments and double slashes, so that no spelling bypasses a rule. Undefined for an invalid path
 * or one above the root.
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

/** The parts before and from the first question mark. */
export function splitTarget(target: string): [path: string, query: string] {
  const at = target.indexOf('?')
  return at < 0 ? [target, ''] : [target.slice(0, at), target.slice(at)]
}

/**
 * Encodes bytes that cannot stand in a request line; HTTP/2 clients may send any. One character stands for one byte.
 */
export function sendable(target: string): string {
  return target.replaceAll(NOT_SENDABLE, (character) => percent(Buffer.from(character, 'latin1')))
}

const NOT_SENDABLE = /[^\x21-\x7e]/g

/**
 * The target after rewriting: `$1` is the first group. Groups come from the decoded path, so special characters are
 * encoded again. A query in the rewrite comes before that of the request; a lone `?` removes the latter.
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
/** All but the path characters of RFC 3986. */
const NOT_OF_PATHS = /[^\w\-.~!$&'()*+,;=:@/]/gu
/** Like paths, without the separators of a query. */
const NOT_OF_QUERIES = /[^\w\-.~!$'()*,;:@/]/gu

/** A lone surrogate becomes U+FFFD. */
function encoded(character: string): string {
  return percent(Buffer.from(character))
}

function percent(bytes: Buffer): string {
  return [...bytes].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
}
