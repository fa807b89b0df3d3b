/**
 * Parses the target of a request. Authorization and routing use the same decoded segments, so that no encoding of a
 * path is authorized as one path and routed as another.
 */

export interface RequestTarget {
  /** Decoded once; a trailing slash adds no segment. `/` is one empty segment. */
  readonly segments: readonly string[]
  /** True if the path ends with a slash. */
  readonly isFolder: boolean
  readonly query: URLSearchParams
}

/** Proxies send an absolute URL. */
const ORIGIN = /^https?:\/\/[^/?]*/i

/**
 * Undefined for an invalid escape. Nothing is normalized: `//exec`, `/./exec` and `/pods/../exec` have first segments
 * without a handler.
 */
export function requestTarget(target: string): RequestTarget | undefined {
  const [path = '', ...rest] = target.replace(ORIGIN, '').split('?')
  const query = new URLSearchParams(rest.join('?'))
  const segments = path.split('/').slice(1)
  if (segments.length > 1 && segments.at(-1) === '') segments.pop()
  try {
    return { segments: segments.map(decodeURIComponent), isFolder: path.endsWith('/'), query }
  } catch {
    return undefined
  }
}
