/** Parses addresses and prefixes as Go's net/netip does, with its error texts. */
import { goQuote } from './text.ts'

export interface Addr {
  readonly family: 4 | 6
  readonly value: bigint
  /** Behind `%`; empty for most. */
  readonly zone: string
}

export interface Prefix {
  readonly addr: Addr
  readonly bits: number
}

class Refusal extends Error {}

/** The address, or the text of Go's error. */
export function parseAddr(text: string): Addr | string {
  try {
    const first = /[.:%]/.exec(text)?.[0]
    if (first === '.') return { family: 4, value: ipv4(text, text), zone: '' }
    if (first === ':') return ipv6(text)
    throw refuse(text, first === '%' ? 'missing IPv6 address' : 'unable to parse IP')
  } catch (error) {
    if (error instanceof Refusal) return error.message
    throw error
  }
}

function refuse(text: string, message: string, at = ''): Refusal {
  return new Refusal(`ParseAddr(${goQuote(text)}): ${message}${at === '' ? '' : ` (at ${goQuote(at)})`}`)
}

/** `part` is the end of `text`. */
function ipv4(text: string, part: string): bigint {
  const fields: number[] = []
  let digits = ''
  for (let at = 0; at < part.length; at++) {
    const char = part.charAt(at)
    if (char >= '0' && char <= '9') {
      if (digits === '0') throw refuse(text, 'IPv4 field has octet with leading zero')
      digits += char
      if (Number(digits) > 255) throw refuse(text, 'IPv4 field has value >255')
    } else if (char === '.') {
      const isEmpty = at === 0 || at === part.length - 1 || part.charAt(at - 1) === '.'
      if (isEmpty) throw refuse(text, 'IPv4 field must have at least one digit', part.slice(at))
      if (fields.length === 3) throw refuse(text, 'IPv4 address too long')
      fields.push(Number(digits))
      digits = ''
    } else throw refuse(text, 'unexpected character', part.slice(at))
  }
  if (fields.length < 3) throw refuse(text, 'IPv4 address too short')
  return [...fields, Number(digits)].reduce((value, field) => value * 256n + BigInt(field), 0n)
}

function ipv6(text: string): Addr {
  const percent = text.indexOf('%')
  const zone = percent < 0 ? '' : text.slice(percent + 1)
  if (percent >= 0 && zone === '') throw refuse(text, 'zone must be a non-empty string')
  const reader = new GroupReader(text, percent < 0 ? text : text.slice(0, percent))
  return { family: 6, value: reader.read(), zone }
}

/** Groups from left to right; `ellipsis` is how many came before `::`. */
class GroupReader {
  readonly #text: string
  #rest: string
  readonly #groups: bigint[] = []
  #ellipsis = -1

  constructor(text: string, rest: string) {
    this.#text = text
    this.#rest = rest
  }

  read(): bigint {
    if (this.#rest.startsWith('::')) {
      this.#ellipsis = 0
      this.#rest = this.#rest.slice(2)
    }
    let more = this.#rest !== '' || this.#ellipsis < 0
    while (more && this.#groups.length < 8) more = this.#readGroup()
    if (this.#rest !== '') throw refuse(this.#text, 'trailing garbage after address', this.#rest)
    return this.#expand().reduce((value, group) => value * 65_536n + group, 0n)
  }

  /** Whether another follows. */
  #readGroup(): boolean {
    const rest = this.#rest
    const hex = /^[0-9a-fA-F]*/.exec(rest)?.[0] ?? ''
    if (hex.length > 4) throw refuse(this.#text, 'each group must have 4 or less digits', rest)
    if (hex === '') throw refuse(this.#text, 'each colon-separated field must have at least one digit', rest)
    if (rest.charAt(hex.length) === '.') return this.#readEmbedded()
    this.#groups.push(BigInt(`0x${hex}`))
    this.#rest = rest.slice(hex.length)
    if (this.#rest === '') return false
    if (!this.#rest.startsWith(':')) throw refuse(this.#text, 'unexpected character, want colon', this.#rest)
    if (this.#rest.length === 1) throw refuse(this.#text, 'colon must be followed by more characters', this.#rest)
    this.#rest = this.#rest.slice(1)
    return !this.#rest.startsWith(':') || this.#readEllipsis()
  }

  #readEllipsis(): boolean {
    if (this.#ellipsis >= 0) throw refuse(this.#text, 'multiple :: in address', this.#rest)
    this.#ellipsis = this.#groups.length
    this.#rest = this.#rest.slice(1)
    return this.#rest !== ''
  }

  #readEmbedded(): boolean {
    const count = this.#groups.length
    if (this.#ellipsis < 0 && count !== 6) {
      throw refuse(this.#text, 'embedded IPv4 address must replace the final 2 fields of the address', this.#rest)
    }
    if (count > 6) {
      throw refuse(this.#text, 'too many hex fields to fit an embedded IPv4 at the end of the address', this.#rest)
    }
    const value = ipv4(this.#text, this.#rest)
    this.#groups.push(value >> 16n, value & 0xffffn)
    this.#rest = ''
    return false
  }

  #expand(): bigint[] {
    const missing = 8 - this.#groups.length
    if (missing === 0 && this.#ellipsis >= 0) {
      throw refuse(this.#text, 'the :: must expand to at least one field of zeros')
    }
    if (missing > 0 && this.#ellipsis < 0) throw refuse(this.#text, 'address string too short')
    return this.#groups.toSpliced(Math.max(this.#ellipsis, 0), 0, ...Array<bigint>(missing).fill(0n))
  }
}

/** The prefix, or the text of Go's error. */
export function parsePrefix(text: string): Prefix | string {
  const refusal = (message: string): string => `netip.ParsePrefix(${goQuote(text)}): ${message}`
  const slash = text.lastIndexOf('/')
  if (slash < 0) return refusal("no '/'")
  const addr = parseAddr(text.slice(0, slash))
  if (typeof addr === 'string') return refusal(addr)
  if (addr.zone !== '') return refusal('IPv6 zones cannot be present in a prefix')
  const digits = text.slice(slash + 1)
  if (!/^(?:0|[1-9][0-9]*)$/.test(digits) || digits.length > 18)
    return refusal(`bad bits after slash: ${goQuote(digits)}`)
  const bits = Number(digits)
  return bits > (addr.family === 4 ? 32 : 128) ? refusal('prefix length out of range') : { addr, bits }
}
