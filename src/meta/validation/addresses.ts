/**
 * IP addresses and CIDRs in fields. Old fields take what Go's parser once took, leading zeros included; new ones only
 * the canonical form (RFC 5952). Both forms are read here, because what is refused depends on their difference.
 */
import { goQuote } from '#lib/go-text.ts'

import { type FieldError, invalid, withOrigin } from './field-error.ts'

const V4_PREFIX = [0, 0, 0, 0, 0, 0xffff]

/** Eight groups of sixteen bits; an IPv4 address is mapped, as in Go. */
interface Address {
  readonly groups: readonly number[]
  /** Written with dots only. */
  readonly dotted: boolean
}

/** The values of a list as a set, made once for all that are looked up in it. */
const keptValues = new WeakMap<readonly string[], ReadonlySet<string>>()

function isKept(value: string, old: readonly string[] | undefined): boolean {
  if (old === undefined || old.length === 0) return false
  const known = keptValues.get(old) ?? new Set(old)
  keptValues.set(old, known)
  return known.has(value)
}

/** A field that has always taken sloppy addresses. `strict` refuses them now; `old` are kept whatever they are. */
export function validateLegacyIp(
  field: string,
  value: string,
  options: { readonly strict?: boolean; readonly old?: readonly string[] } = {},
): FieldError[] {
  if (isKept(value, options.old)) return []
  return withOrigin('format=ip-sloppy', options.strict ? strictIpErrors(field, value) : sloppyIpErrors(field, value))
}

/** A field that takes canonical addresses only. */
export function validateIp(field: string, value: string): FieldError[] {
  const errors = strictIpErrors(field, value)
  if (errors.length > 0) return withOrigin('format=ip-strict', errors)
  const canonical = canonicalIp(value)
  if (canonical === value) return []
  return [invalid(field, value, `must be in canonical form (${goQuote(canonical ?? '')})`, 'format=ip-strict')]
}

/** A field that has always taken sloppy CIDRs. */
export function validateLegacyCidr(
  field: string,
  value: string,
  options: { readonly strict?: boolean; readonly old?: readonly string[] } = {},
): FieldError[] {
  if (isKept(value, options.old)) return []
  if (options.strict) return strictCidrErrors(field, value)
  return parseCidr(value, true) === undefined ? [notCidr(field, value)] : []
}

/** A field that takes canonical CIDRs only. */
export function validateCidr(field: string, value: string): FieldError[] {
  const errors = strictCidrErrors(field, value)
  if (errors.length > 0) return errors
  const canonical = canonicalCidr(value)
  if (canonical === value) return []
  return [invalid(field, value, `must be in canonical form (${goQuote(canonical ?? '')})`)]
}

/** The canonical form of an address, leniently read; undefined when it is none. */
export function canonicalIp(value: string): string | undefined {
  const address = parseIp(value, true)
  return address === undefined ? undefined : addressText(address.groups)
}

/** The canonical form of a CIDR, leniently read, without the bits beyond its prefix; undefined when it is none. */
export function canonicalCidr(value: string): string | undefined {
  const cidr = parseCidr(value, true)
  if (cidr === undefined) return undefined
  const { address, bits } = cidr
  const groups = masked(address, bits)
  const width = isV4(groups) && !address.dotted && bits >= 96 ? bits - 96 : bits
  return `${addressText(groups)}/${width}`
}

function sloppyIpErrors(field: string, value: string): FieldError[] {
  if (parseIp(value, true) !== undefined) return []
  return [invalid(field, value, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)')]
}

function strictIpErrors(field: string, value: string): FieldError[] {
  const errors = sloppyIpErrors(field, value)
  if (errors.length > 0) return errors
  const address = parseIp(value, false)
  if (address === undefined) return [invalid(field, value, 'must not have leading 0s')]
  return isMapped(address) ? [invalid(field, value, 'must not be an IPv4-mapped IPv6 address')] : []
}

function notCidr(field: string, value: string): FieldError {
  return invalid(field, value, 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)')
}

function strictCidrErrors(field: string, value: string): FieldError[] {
  if (parseCidr(value, true) === undefined) return [notCidr(field, value)]
  const cidr = parseCidr(value, false)
  if (cidr === undefined) return [invalid(field, value, 'must not have leading 0s in IP or prefix length')]
  const { address, bits } = cidr
  if (isMapped(address)) return [invalid(field, value, 'must not have an IPv4-mapped IPv6 address')]
  const exact = masked(address, bits).every((group, at) => group === address.groups[at])
  return exact ? [] : [invalid(field, value, 'must not have bits set beyond the prefix length')]
}

function parseCidr(text: string, sloppy: boolean): { address: Address; bits: number } | undefined {
  const slash = text.indexOf('/')
  const address = slash < 0 ? undefined : parseIp(text.slice(0, slash), sloppy)
  const digits = text.slice(slash + 1)
  if (address === undefined || !(sloppy ? /^0*[0-9]{1,3}$/ : /^(?:0|[1-9][0-9]{0,2})$/).test(digits)) return undefined
  const bits = Number(digits)
  return bits <= (address.dotted ? 32 : 128) ? { address, bits } : undefined
}

function parseIp(text: string, sloppy: boolean): Address | undefined {
  if (!text.includes(':')) {
    const groups = parseV4(text, sloppy)
    return groups === undefined ? undefined : { groups: [...V4_PREFIX, ...groups], dotted: true }
  }
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const head = parseGroups(halves[0] as string, sloppy, halves.length === 1)
  const tail = halves.length === 1 ? [] : parseGroups(halves[1] as string, sloppy, true)
  if (head === undefined || tail === undefined) return undefined
  const missing = 8 - head.length - tail.length
  if (halves.length === 1 ? missing !== 0 : missing < 1) return undefined
  return { groups: [...head, ...Array<number>(missing).fill(0), ...tail], dotted: false }
}

/** Groups between colons, none in an empty text; the last may be an IPv4 address. */
function parseGroups(text: string, sloppy: boolean, mayEndInV4: boolean): number[] | undefined {
  if (text === '') return []
  const parts = text.split(':')
  const groups: number[] = []
  for (const [at, part] of parts.entries()) {
    if (mayEndInV4 && at === parts.length - 1 && part.includes('.')) {
      const v4 = parseV4(part, sloppy)
      return v4 === undefined ? undefined : [...groups, ...v4]
    }
    if (!(sloppy ? /^0*[0-9a-fA-F]{1,4}$/ : /^[0-9a-fA-F]{1,4}$/).test(part)) return undefined
    groups.push(Number.parseInt(part, 16))
  }
  return groups
}

/** Two groups of sixteen bits. */
function parseV4(text: string, sloppy: boolean): [number, number] | undefined {
  const pattern = sloppy ? /^0*[0-9]{1,3}$/ : /^(?:0|[1-9][0-9]{0,2})$/
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => pattern.test(part) && Number(part) <= 255)) return undefined
  const [a, b, c, d] = parts.map(Number) as [number, number, number, number]
  return [a * 256 + b, c * 256 + d]
}

function isV4(groups: readonly number[]): boolean {
  return V4_PREFIX.every((group, at) => groups[at] === group)
}

function isMapped({ groups, dotted }: Address): boolean {
  return !dotted && isV4(groups)
}

function masked({ groups, dotted }: Address, bits: number): number[] {
  const total = dotted ? bits + 96 : bits
  return groups.map((group, at) => {
    const kept = Math.min(Math.max(total - at * 16, 0), 16)
    return group & (0xffff << (16 - kept))
  })
}

/** RFC 5952: no leading zeros, and the first of the longest runs of zero groups, if longer than one, as `::`. */
function addressText(groups: readonly number[]): string {
  if (isV4(groups)) return [groups[6], groups[7]].map((group = 0) => `${group >> 8}.${group & 255}`).join('.')
  const runs = groups.map((_, at) => zerosFrom(groups, at))
  const longest = Math.max(...runs)
  const text = (part: readonly number[]): string => part.map((group) => group.toString(16)).join(':')
  if (longest < 2) return text(groups)
  const at = runs.indexOf(longest)
  return `${text(groups.slice(0, at))}::${text(groups.slice(at + longest))}`
}

function zerosFrom(groups: readonly number[], at: number): number {
  let end = at
  while (groups[end] === 0) end++
  return end - at
}
