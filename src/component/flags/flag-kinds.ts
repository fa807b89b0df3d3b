/** Types of flag values that only kube-apiserver has. */
import type { Kind } from '#lib/flags/kinds.ts'

export interface PortRange {
  readonly first: number
  /** Inclusive. */
  readonly last: number
}

/** `30000-32767`, `30000+100` or one port; both ends are inclusive. */
export const portRange: Kind<PortRange> = {
  type: 'portRange',
  hint: 'portRange',
  parse: parsePortRange,
  print: ({ first, last }) => (last === 0 ? '' : `${first}-${last}`),
  plain: [''],
}

function parsePortRange(text: string): PortRange {
  const match = /^(\d{1,5})(?:([-+])(\d{1,5}))?$/.exec(text.trim())
  if (match === null) throw new Error(`unable to parse port range: ${text}`)
  const first = Number(match[1])
  const second = Number(match[3] ?? 0)
  const last = match[2] === undefined ? first : match[2] === '+' ? Math.min(first + second, MAX_PORT) : second
  if (first > MAX_PORT || last > MAX_PORT) throw new Error(`the port range cannot be greater than 65535: ${text}`)
  if (last < first) throw new Error(`end port cannot be less than start port: ${text}`)
  return { first, last }
}

const MAX_PORT = 65_535

/** Files of a certificate and its key, and their host names; none: those in the certificate. */
export interface NamedCertificate {
  readonly certFile: string
  readonly keyFile: string
  readonly names: readonly string[]
}

/** `cert.pem,key.pem` or `cert.pem,key.pem:*.example.com,example.com`; repetition adds one. */
export const namedCertificates: Kind<readonly NamedCertificate[]> = {
  type: 'namedCertKey',
  hint: 'namedCertKey',
  parse: (text) => [parseNamedCertificate(text)],
  print: (pairs) => `[${pairs.map(printNamedCertificate).join(';')}]`,
  plain: [],
  zero: [],
  join: (before, next) => [...before, ...next],
}

function parseNamedCertificate(text: string): NamedCertificate {
  const [files = '', names, ...rest] = text.split(':')
  const [certFile = '', keyFile = '', ...more] = files.split(',').map((file) => file.trim())
  if (rest.length > 0 || more.length > 0 || certFile === '' || keyFile === '') {
    throw new Error('expected comma separated certificate and key file paths, and names behind a colon')
  }
  return { certFile, keyFile, names: (names ?? '').split(',').filter((name) => name !== '') }
}

function printNamedCertificate({ certFile, keyFile, names }: NamedCertificate): string {
  return `${certFile},${keyFile}${names.length === 0 ? '' : `:${names.join(',')}`}`
}

/** `a=b,c`: a key alone has an empty value; repetition adds keys. */
export const configurationMap: Kind<ReadonlyMap<string, string>> = {
  type: 'mapStringString',
  hint: 'mapStringString',
  parse: (text) => new Map(text.split(',').filter(Boolean).map(splitOnce)),
  print: (map) =>
    [...map]
      .map(([key, value]) => `${key}=${value}`)
      .sort()
      .join(','),
  plain: [''],
  zero: new Map(),
  join: (before, next) => new Map([...before, ...next]),
}

/** One `key=value` per flag, which may contain commas. */
export const claimMap: Kind<ReadonlyMap<string, string>> = {
  ...configurationMap,
  type: 'mapStringString',
  parse(text) {
    if (!text.includes('=')) throw new Error(`malformed pair, expect string=string`)
    return new Map([splitOnce(text)])
  },
}

function splitOnce(pair: string): [string, string] {
  const at = pair.indexOf('=')
  return at < 0 ? [pair.trim(), ''] : [pair.slice(0, at).trim(), pair.slice(at + 1).trim()]
}
