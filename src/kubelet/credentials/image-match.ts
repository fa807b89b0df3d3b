/** Whether a name of an image lies where a pattern of a registry says: host by host part, port, and the beginning of the path. Pure. */

interface Place {
  readonly host: readonly string[]
  readonly port: string
  readonly path: string
}

function placeOf(text: string): Place {
  const slash = text.indexOf('/')
  const authority = slash < 0 ? text : text.slice(0, slash)
  const [, host = authority, port = ''] = /^(.*):(\d*)$/.exec(authority) ?? []
  return { host: host.split('.'), port, path: slash < 0 ? '' : text.slice(slash) }
}

/** `*.example.com:5000/team`: in each part of the host what shells match, but never a dot. */
export function matchesImage(pattern: string, image: string): boolean {
  const [wanted, given] = [placeOf(pattern), placeOf(image)]
  if (wanted.port !== given.port || wanted.host.length !== given.host.length) return false
  if (!given.path.startsWith(wanted.path)) return false
  return wanted.host.every((part, at) => globOf(part).test(given.host[at] ?? ''))
}

/** As Go's filepath.Match reads it, without what no host has. */
function globOf(pattern: string): RegExp {
  const source = pattern.replaceAll(/[*?]|[^*?]+/g, (piece) => {
    if (piece === '*') return '.*'
    return piece === '?' ? '.' : RegExp.escape(piece)
  })
  return new RegExp(`^${source}$`, 's')
}
