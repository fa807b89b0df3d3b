/** Parses and formats URLs as Go's net/url does, with its error texts. */
import { parseAddr } from './netip.ts'
import { goQuote } from './text.ts'

export interface GoUrl {
  readonly scheme: string
  /** With the port. */
  readonly host: string
  readonly hostname: string
  readonly port: string
  readonly escapedPath: string
  /** As it would be written. */
  readonly text: string
  /** The values of each parameter; what cannot be understood is left out. */
  query(): Map<string, string[]>
}

class Refusal extends Error {}

const refuse = (message: string): Refusal => new Refusal(message)

/** url.ParseRequestURI: an absolute URI or an absolute path. The text of Go's error when it is neither. */
export function parseRequestUri(text: string): GoUrl | string {
  return attempt(text, () => parse(text, '', true))
}

/** url.Parse, which also takes relative references and fragments. */
export function parseGoUrl(text: string): GoUrl | string {
  const hash = text.indexOf('#')
  const [url, fragment] = hash < 0 ? [text, ''] : [text.slice(0, hash), text.slice(hash + 1)]
  return attempt(url, () => parse(url, fragment, false))
}

function attempt(text: string, read: () => GoUrl): GoUrl | string {
  try {
    return read()
  } catch (error) {
    if (error instanceof Refusal) return `parse ${goQuote(text)}: ${error.message}`
    throw error
  }
}

interface Parts {
  readonly scheme: string
  readonly opaque: string
  readonly user: string | undefined
  readonly host: string
  readonly path: string
  readonly query: string | undefined
  readonly fragment: string
}

function parse(text: string, fragment: string, viaRequest: boolean): GoUrl {
  // oxlint-disable-next-line no-control-regex -- that they are not allowed is the point
  if (/[\u0000-\u001f\u007f]/.test(text)) throw refuse('net/url: invalid control character in URL')
  if (text === '' && viaRequest) throw refuse('empty url')
  const empty = { scheme: '', opaque: '', user: undefined, host: '', path: '', query: undefined, fragment }
  if (text === '*') return urlOf({ ...empty, path: '*' })
  if (text.startsWith(':')) throw refuse('missing protocol scheme')
  const written = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(text)?.[1]
  const after = written === undefined ? text : text.slice(written.length + 1)
  const mark = after.indexOf('?')
  const [rest, query] = mark < 0 ? [after, undefined] : [after.slice(0, mark), after.slice(mark + 1)]
  const parts = { ...empty, scheme: (written ?? '').toLowerCase(), query }
  return rest.startsWith('/') ? withPath(parts, rest, viaRequest) : withoutSlash(parts, rest, viaRequest)
}

function withoutSlash(parts: Parts, rest: string, viaRequest: boolean): GoUrl {
  if (parts.scheme !== '') return urlOf({ ...parts, opaque: rest })
  if (viaRequest) throw refuse('invalid URI for request')
  if (rest.split('/', 1)[0]?.includes(':')) throw refuse('first path segment in URL cannot contain colon')
  return urlOf({ ...parts, path: soundPath(rest) })
}

function withPath(parts: Parts, rest: string, viaRequest: boolean): GoUrl {
  const hasAuthority = rest.startsWith('//') && (parts.scheme !== '' || (!viaRequest && !rest.startsWith('///')))
  if (!hasAuthority) return urlOf({ ...parts, path: soundPath(rest) })
  const slash = rest.indexOf('/', 2)
  const authority = parseAuthority(parts.scheme, slash < 0 ? rest.slice(2) : rest.slice(2, slash))
  return urlOf({ ...parts, ...authority, path: soundPath(slash < 0 ? '' : rest.slice(slash)) })
}

function soundPath(path: string): string {
  checkEscapes(path)
  return path
}

function checkEscapes(text: string): void {
  const bad = /%(?![0-9a-fA-F]{2})/.exec(text)
  if (bad !== null) throw badEscape(text.slice(bad.index))
}

const badEscape = (rest: string): Refusal => refuse(`invalid URL escape ${goQuote(rest.slice(0, 3))}`)

function parseAuthority(scheme: string, authority: string): { user: string | undefined; host: string } {
  const at = authority.lastIndexOf('@')
  const host = parseHost(scheme, authority.slice(at + 1))
  if (at < 0) return { user: undefined, host }
  const user = authority.slice(0, at)
  if (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(user)) throw refuse('net/url: invalid userinfo')
  checkEscapes(user)
  return { user, host }
}

function parseHost(scheme: string, host: string): string {
  const bracket = host.lastIndexOf('[')
  if (bracket > 0) throw refuse('invalid IP-literal')
  if (bracket === 0) return parseBracketed(host)
  const first = host.indexOf(':')
  if (first >= 0) {
    const isStrict = scheme === 'http' || scheme === 'https'
    checkPort(host.slice(isStrict ? first : host.lastIndexOf(':')))
  }
  return unescapeHost(host)
}

function parseBracketed(host: string): string {
  const end = host.lastIndexOf(']')
  if (end < 0) throw refuse("missing ']' in host")
  const port = host.slice(end + 1)
  checkPort(port)
  const inside = host.slice(1, end)
  const zone = inside.indexOf('%25')
  const name = zone < 0 ? unescapeHost(inside) : unescapeHost(inside.slice(0, zone)) + unescapeZone(inside.slice(zone))
  const address = parseAddr(name)
  if (typeof address === 'string') throw refuse(`invalid host: ${address}`)
  if (address.family === 4) throw refuse('invalid IP-literal')
  return `[${name}]${port}`
}

function checkPort(port: string): void {
  if (!/^(?::[0-9]*)?$/.test(port)) throw refuse(`invalid port ${goQuote(port)} after host`)
}

/** Escapes in a host stand for what is not ASCII, or for a percent sign. */
function unescapeHost(host: string): string {
  checkEscapes(host)
  const ascii = /%(?!25|[89a-fA-F])/.exec(host)
  if (ascii !== null) throw badEscape(host.slice(ascii.index))
  const bad = /[^A-Za-z0-9\-_.~!$&'()*+,;=:[\]<>"%\u0080-\uffff]/.exec(host)
  if (bad !== null) throw refuse(`invalid character ${goQuote(bad[0])} in host name`)
  return decode(host)
}

function unescapeZone(zone: string): string {
  checkEscapes(zone)
  return decode(zone)
}

/** Bytes that are no UTF-8 are lost, which Go would keep. */
function decode(text: string): string {
  if (!text.includes('%')) return text
  const bytes = Buffer.from(text).toString('latin1')
  const raw = bytes.replaceAll(/%([0-9a-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(raw, 'latin1').toString()
}

function urlOf(parts: Parts): GoUrl {
  const { scheme, host, path, query } = parts
  const escapedPath = escapePath(path)
  const colon = /:[0-9]*$/.exec(host)
  const name = colon === null ? host : host.slice(0, colon.index)
  return {
    scheme,
    host,
    hostname: /^\[.*\]$/.test(name) ? name.slice(1, -1) : name,
    port: colon?.[0].slice(1) ?? '',
    escapedPath,
    text: writeUrl(parts, escapedPath),
    query: () => parseQuery(query ?? ''),
  }
}

/** As it was written, where that is a way to write it. */
function escapePath(path: string): string {
  if (/^[A-Za-z0-9\-_.~!$&'()*+,/:;=@[\]%]*$/.test(path)) return path
  const bytes = Buffer.from(decode(path)).toString('latin1')
  return bytes.replaceAll(/[^A-Za-z0-9\-_.~$&+,/:;=@]/g, (char) => `%${hexOf(char)}`)
}

const hexOf = (char: string): string => char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')

function writeUrl({ scheme, opaque, user, host, query, fragment }: Parts, escapedPath: string): string {
  const start = scheme === '' ? '' : `${scheme}:`
  const authority = `${user === undefined ? '' : `${user}@`}${host}`
  const body = opaque === '' ? `${authority === '' ? '' : `//${authority}`}${escapedPath}` : opaque
  return `${start}${body}${query === undefined ? '' : `?${query}`}${fragment === '' ? '' : `#${fragment}`}`
}

function parseQuery(query: string): Map<string, string[]> {
  const values = new Map<string, string[]>()
  for (const pair of query.split('&')) {
    if (pair === '' || pair.includes(';') || /%(?![0-9a-fA-F]{2})/.test(pair)) continue
    const equals = pair.indexOf('=')
    const [key, value] = equals < 0 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)]
    const name = decode(key.replaceAll('+', ' '))
    const known = values.get(name)
    const found = decode(value.replaceAll('+', ' '))
    if (known === undefined) values.set(name, [found])
    else known.push(found)
  }
  return values
}
