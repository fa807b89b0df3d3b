/**
 * Validates IP addresses and CIDRs in fields. Old fields accept the notation of Go's former parser, including leading
 * zeros; new fields accept only the canonical form (RFC 5952).
 */
import { goQuote } from '#lib/go/text.ts'
import { parseDotted } from '#lib/net/ipv4.ts'

import { type FieldError, type FieldPath, withOrigin } from './field-path.ts'

const V4_PREFIX = [0, 0, 0, 0, 0, 0xffff]

/** Eight groups of sixteen bits; IPv4 is mapped, as in Go. */
interface Address {
  readonly groups: readonly number[]
  /** Written with dots only. */
  readonly dotted: boolean
}

/** A list of values as a set, created once for many lookups. */
const keptValues = new WeakMap<readonly string[], ReadonlySet<string>>()

function isKept(value: string, old: readonly string[] | undefined): boolean {
  if (old === undefined || old.length === 0) return false
  const known = keptValues.get(old) ?? new Set(old)
  keptValues.set(old, known)
  return known.has(value)
}

/** A field that accepts sloppy addresses. `strict` rejects them; `old` values are kept. */
export function validateLegacyIp(
  path: FieldPath,
  value: string,
  options: { readonly strict?: boolean; readonly old?: readonly string[] } = {},
): FieldError[] {
  if (isKept(value, options.old)) return []
  return withOrigin('format=ip-sloppy', options.strict ? strictIpErrors(path, value) : sloppyIpErrors(path, value))
}

/** A field that accepts only canonical addresses. */
export function validateIp(path: FieldPath, value: string): FieldError[] {
  const errors = strictIpErrors(path, value)
  if (errors.length > 0) return withOrigin('format=ip-strict', errors)
  const canonical = canonicalIp(value)
  if (canonical === value) return []
  return [path.invalid(value, `must be in canonical form (${goQuote(canonical ?? '')})`, 'format=ip-strict')]
}

/** A field that accepts sloppy CIDRs. */
export function validateLegacyCidr(
  path: FieldPath,
  value: string,
  options: { readonly strict?: boolean; readonly old?: readonly string[] } = {},
): FieldError[] {
  if (isKept(value, options.old)) return []
  if (options.strict) return strictCidrErrors(path, value)
  return parseCidr(value, true) === undefined ? [notCidr(path, value)] : []
}

/** A field that accepts only canonical CIDRs. */
export function validateCidr(path: FieldPath, value: string): FieldError[] {
  const errors = strictCidrErrors(path, value)
  if (errors.length > 0) return errors
  const canonical = canonicalCidr(value)
  if (canonical === value) return []
  return [path.invalid(value, `must be in canonical form (${goQuote(canonical ?? '')})`)]
}

/** The canonical form of a leniently parsed address; undefined if it is none. */
export function canonicalIp(value: string): string | undefined {
  const address = parseIp(value, true)
  return address === undefined ? undefined : addressText(address.groups)
}

/** The canonical form of a leniently parsed CIDR, without bits beyond its prefix; undefined if it is none. */
export function canonicalCidr(value: string): string | undefined {
  const cidr = parseCidr(value, true)
  if (cidr === undefined) return undefined
  const { address, bits } = cidr
  const groups = masked(address, bits)
  const width = isV4(groups) && !address.dotted && bits >= 96 ? bits - 96 : bits
  return `${addressText(groups)}/${width}`
}

function sloppyIpErrors(path: FieldPath, value: string): FieldError[] {
  if (parseIp(value, true) !== undefined) return []
  return [path.invalid(value, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)')]
}

function strictIpErrors(path: FieldPath, value: string): FieldError[] {
  const errors = sloppyIpErrors(path, value)
  if (errors.length > 0) return errors
  const address = parseIp(value, false)
  if (address === undefined) return [path.invalid(value, 'must not have leading 0s')]
  return isMapped(address) ? [path.invalid(value, 'must not be an IPv4-mapped IPv6 address')] : []
}

function notCidr(path: FieldPath, value: string): FieldError {
  return path.invalid(value, 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)')
}

function strictCidrErrors(path: FieldPath, value: string): FieldError[] {
  if (parseCidr(value, true) === undefined) return [notCidr(path, value)]
  const cidr = parseCidr(value, false)
  if (cidr === undefined) return [path.invalid(value, 'must not have leading 0s in IP or prefix length')]
  const { address, bits } = cidr
  if (isMapped(address)) return [path.invalid(value, 'must not have an IPv4-mapped IPv6 address')]
  const exact = masked(address, bits).every((group, at) => group === address.groups[at])
  return exact ? [] : [path.invalid(value, 'must not have bits set beyond the prefix length')]
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
  const value = parseDotted(text, sloppy)
  return value === undefined ? undefined : [value >>> 16, value & 0xffff]
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

/** RFC 5952: no leading zeros, and the first longest run of zero groups, if longer than one, as `::`. */
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
