/**
 * Validates the path of a request before routing. It refuses ambiguous paths, which a proxy and a cluster could
 * decode differently.
 */

/** The segments of the path, decoded, or why it is refused. */
export function segmentsOf(path: string): readonly string[] | { readonly refused: string } {
  if (!path.startsWith('/')) return { refused: 'the path does not begin with a slash' }
  if (path.includes('//')) return { refused: 'the path has an empty segment' }
  // A slash at the end is part of paths of clusters, such as those of proxies.
  const raw = path.slice(1).split('/')
  const segments: string[] = []
  for (const segment of raw) {
    const text = decoded(segment)
    if (text === undefined) return { refused: 'the path has an invalid escape' }
    // eslint-disable-next-line no-control-regex
    if (/[\u0000-\u001f\u007f\\]/.test(text)) return { refused: 'the path has a forbidden character' }
    if (text === '.' || text === '..') return { refused: 'the path has a relative segment' }
    segments.push(text)
  }
  return segments
}

/**
 * The same for the part that is passed on to a cluster: also refuses encoded slashes and double encodings of the
 * characters above, because servers differ in how often they decode.
 */
export function refusalOfRest(rest: string): string | undefined {
  const [path = ''] = rest.split('?')
  let text = path
  for (let times = 0; times < MAX_DECODINGS; times++) {
    if (/(?:^|\/)\.\.?(?:\/|$)|\\|\/\//.test(text)) return 'the path can be read in more than one way'
    const next = decoded(text)
    if (next === undefined || next === text) return undefined
    text = next
  }
  return 'the path is encoded several times'
}

const MAX_DECODINGS = 4

function decoded(text: string): string | undefined {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
