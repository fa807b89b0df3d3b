/**
 * The target of a request to the kubelet: its path in decoded segments, and its query. Authorization and routing read
 * the same segments, so no spelling of a path passes one and reaches the other.
 */

export interface RequestTarget {
  /** Decoded once; a trailing slash adds none. `/` is one empty segment. */
  readonly segments: readonly string[]
  /** Whether the path ends in a slash. */
  readonly isFolder: boolean
  readonly query: URLSearchParams
}

/** Proxies send the whole URL. */
const ORIGIN = /^https?:\/\/[^/?]*/i

/**
 * Undefined: an escape that is none. Nothing is resolved: `//exec`, `/./exec` and `/pods/../exec` begin with segments
 * that no handler has.
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
