/**
 * The path behind `…/proxy`, as it is sent on: decoded, cleaned of `.`, `..` and doubled slashes, and encoded anew. So
 * whoever decodes it next, sees what we saw, and nothing climbs out of where it was let in.
 */
import { badRequestError } from '#meta/status-errors.ts'

/** What Go leaves as it is in a path. */
const PLAIN = /[A-Za-z0-9\-_.~$&+,/:;=@]/

/** `rest` is how many segments of the request's path are behind the subresource. Throws StatusError 400. */
export function proxyPath(requestPath: string, rest: number): string {
  const segments = requestPath.split('/').filter((segment) => segment !== '')
  const behind = rest === 0 ? [] : segments.slice(-rest)
  const decoded = behind.map(decodeBytes).join('/')
  const cleaned = behind.length === 0 ? '' : cleanPath(decoded)
  const isFolder = requestPath.endsWith('/') || decoded.endsWith('/')
  return encodeBytes(isFolder && !cleaned.endsWith('/') ? `${cleaned}/` : cleaned)
}

/** One character a byte: what is encoded need not be UTF-8. */
function decodeBytes(segment: string): string {
  return Buffer.from(segment)
    .toString('latin1')
    .replaceAll(/%(.{0,2})/gs, (escape: string, digits: string) => {
      if (!/^[0-9a-f]{2}$/i.test(digits)) throw badRequestError(`invalid URL escape "${escape}"`)
      return String.fromCharCode(Number.parseInt(digits, 16))
    })
}

function encodeBytes(path: string): string {
  return path.replaceAll(/[\s\S]/g, (char) =>
    PLAIN.test(char) ? char : `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  )
}

/** As Go's path.Clean of a rooted path. */
export function cleanPath(path: string): string {
  const out: string[] = []
  for (const segment of path.split('/')) {
    if (segment === '..') out.pop()
    else if (segment !== '' && segment !== '.') out.push(segment)
  }
  return `/${out.join('/')}`
}
