/** Validates text formats with the leniency of upstream's strfmt. Unknown formats accept everything. */

import { parseDuration } from '#lib/go/duration.ts'
import { byteLength } from '#lib/go/text.ts'
import { parseRequestUri } from '#lib/go/url.ts'
import { parseCidr, parseIp } from '#lib/net/cidr.ts'
import { parseTime } from '#meta/time.ts'
import { dns1123Subdomain } from '#meta/validation/names.ts'

import { isEmailAddress } from './email-address.ts'

type Check = (text: string) => boolean

const pattern =
  (regexp: RegExp): Check =>
  (text) =>
    regexp.test(text)

const checks = new Map<string, Check>([
  ['bsonobjectid', pattern(/^[0-9a-f]{24}$/i)],
  ['uri', (text) => typeof parseRequestUri(text) !== 'string'],
  ['email', isEmailAddress],
  ['hostname', isHostname],
  ['ipv4', (text) => text.includes('.') && parseIp(text, { sloppy: true }) !== undefined],
  ['ipv6', (text) => text.includes(':') && parseIp(text, { mapped: true }) !== undefined],
  ['cidr', (text) => parseCidr(text, { sloppy: true }) !== undefined],
  ['mac', isMac],
  ['uuid', pattern(/^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i)],
  ['uuid3', pattern(/^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i)],
  ['uuid4', pattern(/^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i)],
  ['uuid5', pattern(/^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i)],
  ['isbn', (text) => isIsbn10(text) || isIsbn13(text)],
  ['isbn10', isIsbn10],
  ['isbn13', isIsbn13],
  ['creditcard', isCreditCard],
  ['ssn', (text) => text.length === 11 && /^\d{3}[- ]?\d{2}[- ]?\d{4}$/.test(text)],
  ['hexcolor', pattern(/^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/)],
  ['rgbcolor', isRgbColor],
  ['byte', (text) => text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text)],
  ['password', () => true],
  ['date', isDate],
  ['duration', isDuration],
  ['datetime', isDateTime],
  ['k8sshortname', (text) => text.length <= 63 && /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/.test(text)],
  ['k8slongname', (text) => dns1123Subdomain(text).length === 0],
])

/** Formats of numbers, by type. */
const numeric: Readonly<Record<string, readonly string[]>> = {
  integer: ['int32', 'int64'],
  number: ['float', 'double'],
}

/** True if the format is known for the type. */
export function isCheckedFormat(format: string, type: string): boolean {
  if (type === '' || type === 'string') return checks.has(plainName(format))
  return numeric[type]?.includes(format) ?? false
}

/** Checks a text against a known format. */
export function hasFormat(format: string, text: string): boolean {
  return checks.get(plainName(format))?.(text) ?? true
}

function plainName(format: string): string {
  return format.replaceAll('-', '')
}

const hostname =
  /^(?:[a-zA-Z0-9\p{S}\p{L}](?:-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?|(?:[a-zA-Z0-9\p{S}\p{L}](?:[a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?\.)+[a-zA-Z\p{L}]{2,63})$/u

function isHostname(text: string): boolean {
  return byteLength(text) <= 255 && hostname.test(text) && text.split('.').every((part) => byteLength(part) <= 63)
}

/** Six, eight or twenty bytes, in pairs with colons or dashes, in fours with dots, or without separators. */
function isMac(text: string): boolean {
  const pairs = /^[0-9a-f]{2}([:-])[0-9a-f]{2}(?:\1[0-9a-f]{2})*$/i.test(text) && [17, 23, 59].includes(text.length)
  const fours = /^[0-9a-f]{4}(?:\.[0-9a-f]{4})+$/i.test(text) && [14, 19, 49].includes(text.length)
  return pairs || fours || /^(?:[0-9a-f]{12}|[0-9a-f]{16}|[0-9a-f]{40})$/i.test(text)
}

function digitsOf(text: string): number[] {
  return Array.from(text, (digit) => (digit === 'X' ? 10 : Number(digit)))
}

function isIsbn10(text: string): boolean {
  const plain = text.replaceAll(/[\t\n\f\r -]/g, '')
  if (!/^(?:[0-9]{9}X|[0-9]{10})$/.test(plain)) return false
  return digitsOf(plain).reduce((sum, digit, at) => sum + (at + 1) * digit, 0) % 11 === 0
}

function isIsbn13(text: string): boolean {
  const plain = text.replaceAll(/[\t\n\f\r -]/g, '')
  if (!/^[0-9]{13}$/.test(plain)) return false
  return digitsOf(plain).reduce((sum, digit, at) => sum + (at % 2 === 0 ? digit : 3 * digit), 0) % 10 === 0
}

const cards =
  /^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$/

function isCreditCard(text: string): boolean {
  const plain = text.replaceAll(/[^0-9]+/g, '')
  if (!cards.test(plain)) return false
  const sum = digitsOf(plain).reduceRight((all, digit, at) => {
    const doubled = (plain.length - 1 - at) % 2 === 1 ? 2 * digit : digit
    return all + (doubled > 9 ? doubled - 9 : doubled)
  }, 0)
  return sum % 10 === 0
}

const colour = '(?:0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])'
const space = '[\\t\\n\\f\\r ]*'
const rgb = new RegExp(`^rgb\\(${[colour, colour, colour].map((one) => space + one + space).join(',')}\\)$`)

function isRgbColor(text: string): boolean {
  return rgb.test(text)
}

function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false
  try {
    parseTime(`${text}T00:00:00Z`)
    return true
  } catch {
    return false
  }
}

function isDateTime(text: string): boolean {
  const [date = '', time] = text.toLowerCase().split('t')
  if (time === undefined || !isDate(date)) return false
  const parts = /^([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})$/.exec(time)
  if (parts === null) return false
  const [, hour = '', minute = '', second = ''] = parts
  return hour <= '23' && minute <= '59' && second <= '59'
}

/** Duration units in addition to Go's, from Scala; a unit may begin with the last word of its row. */
const scalaUnits = [
  ['ns', 'nano'],
  ['us', 'µs', 'micro'],
  ['ms', 'milli'],
  ['s', 'sec'],
  ['m', 'min'],
  ['h', 'hr', 'hour'],
  ['d', 'day'],
  ['w', 'wk', 'week'],
] as const

function isDuration(text: string): boolean {
  try {
    parseDuration(text)
    return true
  } catch {
    const terms = [...text.matchAll(/(\d+)[\t\n\f\r ]*([A-Za-z\u00b5]+)/g)]
    return (
      terms.every(([, factor = '']) => isInt64(factor)) &&
      terms.some(([, , unit = '']) => isScalaUnit(unit.toLowerCase()))
    )
  }
}

const MAX_INT64 = '9223372036854775807'

function isInt64(digits: string): boolean {
  const plain = digits.replace(/^0+/, '')
  return plain.length < MAX_INT64.length || (plain.length === MAX_INT64.length && plain <= MAX_INT64)
}

function isScalaUnit(unit: string): boolean {
  return scalaUnits.some((row) => row.some((word) => word === unit) || unit.startsWith(row.at(-1) as string))
}
