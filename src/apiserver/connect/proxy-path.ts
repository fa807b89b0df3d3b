/**
 * Cleans the path behind `…/proxy`: decodes it, removes `.`, `..` and double slashes, and encodes it again. The cleaned
 * path cannot leave the root of the proxy.
 */
import { badRequestError } from '#meta/status-errors.ts'

/** The characters that Go does not escape in a path. */
const PLAIN = /[A-Za-z0-9\-_.~$&+,/:;=@]/

/** `rest` is the number of path segments behind the subresource. Throws StatusError 400. */
export function proxyPath(requestPath: string, rest: number): string {
  const segments = requestPath.split('/').filter((segment) => segment !== '')
  const behind = rest === 0 ? [] : segments.slice(-rest)
  const decoded = behind.map(decodeBytes).join('/')
  const cleaned = behind.length === 0 ? '' : cleanPath(decoded)
  const isFolder = requestPath.endsWith('/') || decoded.endsWith('/')
  return encodeBytes(isFolder && !cleaned.endsWith('/') ? `${cleaned}/` : cleaned)
}

/** One character per byte: the decoded bytes need not be UTF-8. */
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

/** Like Go's path.Clean of a rooted path. */
export function cleanPath(path: string): string {
  const out: string[] = []
  for (const segment of path.split('/')) {
    if (segment === '..') out.pop()
    else if (segment !== '' && segment !== '.') out.push(segment)
  }
  return `/${out.join('/')}`
}
