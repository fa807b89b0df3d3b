/** What Go's url.ParseRequestURI takes: an absolute URI, or an absolute path. */
import { parseIp } from '#lib/cidr.ts'

export function isRequestUri(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- that they are not allowed is the point
  if (text === '' || /[\u0000-\u001f\u007f]/.test(text)) return false
  if (text === '*') return true
  if (text.startsWith(':')) return false
  const scheme = /^[a-zA-Z][a-zA-Z0-9+.-]*:/.exec(text)?.[0] ?? ''
  const [rest = ''] = text.slice(scheme.length).split('?', 1)
  if (!rest.startsWith('/')) return scheme !== ''
  if (scheme === '' || !rest.startsWith('//')) return hasSoundEscapes(rest)
  const slash = rest.indexOf('/', 2)
  const authority = slash < 0 ? rest.slice(2) : rest.slice(2, slash)
  return isAuthority(authority) && (slash < 0 || hasSoundEscapes(rest.slice(slash)))
}

function hasSoundEscapes(text: string): boolean {
  return !/%(?![0-9a-fA-F]{2})/.test(text)
}

function isAuthority(authority: string): boolean {
  const at = authority.lastIndexOf('@')
  const user = authority.slice(0, Math.max(at, 0))
  // Go 1.26 takes no other ASCII in the user's part.
  if (!/^(?:[A-Za-z0-9\-._:~!$&'()*+,;=%@])*$/.test(user) || !hasSoundEscapes(user)) return false
  return isHost(authority.slice(at + 1))
}

function isHost(host: string): boolean {
  if (host.startsWith('[')) {
    const end = host.lastIndexOf(']')
    const [address = '', zone = ''] = host.slice(1, end).split(/%25(.*)/)
    const isAddress = address.includes(':') && parseIp(address, { mapped: true }) !== undefined
    return end > 0 && isAddress && /^(?::\d*)?$/.test(host.slice(end + 1)) && hasSoundEscapes(zone)
  }
  if (host.includes('[')) return false
  const colon = host.lastIndexOf(':')
  if (colon < 0) return isHostName(host)
  return /^:\d*$/.test(host.slice(colon)) && !host.slice(0, colon).includes(':') && isHostName(host.slice(0, colon))
}

/** Escapes stand for what is not ASCII only. */
function isHostName(name: string): boolean {
  return !/[\s"#%/?@\\^`{|}]/.test(name.replaceAll(/%[89a-fA-F][0-9a-fA-F]/g, ''))
}
