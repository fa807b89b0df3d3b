/** Matches an image name against a registry pattern of a credential provider. Pure. */

interface ImageLocation {
  readonly host: readonly string[]
  readonly port: string
  readonly path: string
}

function locationOf(text: string): ImageLocation {
  const slash = text.indexOf('/')
  const authority = slash < 0 ? text : text.slice(0, slash)
  const [, host = authority, port = ''] = /^(.*):(\d*)$/.exec(authority) ?? []
  return { host: host.split('.'), port, path: slash < 0 ? '' : text.slice(slash) }
}

/** `*.example.com:5000/team`: each host part is a glob without dots. */
export function matchesImage(pattern: string, image: string): boolean {
  const [wanted, given] = [locationOf(pattern), locationOf(image)]
  if (wanted.port !== given.port || wanted.host.length !== given.host.length) return false
  if (!given.path.startsWith(wanted.path)) return false
  return wanted.host.every((part, at) => globOf(part).test(given.host[at] ?? ''))
}

/** Go's filepath.Match, without syntax that hosts cannot contain. */
function globOf(pattern: string): RegExp {
  const source = pattern.replaceAll(/[*?]|[^*?]+/g, (piece) => {
    if (piece === '*') return '.*'
    return piece === '?' ? '.' : RegExp.escape(piece)
  })
  return new RegExp(`^${source}$`, 's')
}
