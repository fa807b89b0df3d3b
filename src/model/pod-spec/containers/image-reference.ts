/**
 * Parses image references, `registry/path:tag@digest`, by the distribution project's grammar. The server needs only
 * their validity and their tag.
 */

const part = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*'
const hostPart = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])'
const host = `(?:${hostPart}(?:\\.${hostPart})*|\\[(?:[a-fA-F0-9:]+)\\])(?::[0-9]+)?`
const digest = '([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*):([0-9a-fA-F]{32,})'
const reference = new RegExp(`^${host}/(${part}(?:/${part})*)(?::([A-Za-z0-9_][\\w.-]{0,127}))?(?:@${digest})?$`)

const MAX_PATH_LENGTH = 255
const digestLengths = new Map([
  ['sha256', 64],
  ['sha384', 96],
  ['sha512', 128],
])

const DEFAULT_DOMAIN = 'docker.io'

/** The tag of an image: `latest` without a tag and digest. Empty for a digest alone, and for an invalid reference. */
export function imageTag(image: string): string {
  // Sixty-four hex digits are an image id, not a name.
  if (/^[a-f0-9]{64}$/.test(image)) return ''
  const match = reference.exec(normalized(image))
  if (match === null) return ''
  const [, path = '', tag, algorithm, hex] = match
  if (path.length > MAX_PATH_LENGTH) return ''
  if (hex !== undefined && !isDigest(algorithm ?? '', hex)) return ''
  return tag ?? (hex === undefined ? 'latest' : '')
}

function isDigest(algorithm: string, hex: string): boolean {
  return digestLengths.get(algorithm) === hex.length && hex === hex.toLowerCase()
}

/** With the registry. The first part of a path is a registry if it looks like a host. */
function normalized(image: string): string {
  const slash = image.indexOf('/')
  const first = slash < 0 ? '' : image.slice(0, slash)
  const isHost = slash >= 0 && (first === 'localhost' || /[.:]/.test(first) || first.toLowerCase() !== first)
  const rest = isHost ? image.slice(slash + 1) : image
  const domain = !isHost || first === 'index.docker.io' ? DEFAULT_DOMAIN : first
  return `${domain}/${domain === DEFAULT_DOMAIN && !rest.includes('/') ? 'library/' : ''}${rest}`
}
