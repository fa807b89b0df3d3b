/** The value types of flags with several parts: lists, maps, addresses and lists of addresses. */

import { readRecord, writeRecord } from '../files/csv.ts'
import { goQuote } from '../go/text.ts'
import { formatCidr, formatIp, parseCidr, parseIp } from '../net/cidr.ts'
import type { Kind } from './kinds.ts'

/** Comma-separated strings, quoted as in CSV; given again it appends. */
export const strings: Kind<readonly string[]> = listKind('stringSlice', 'strings', splitRecord, (item) => item)

/** One string each time it is given, commas and all. */
export const stringArray: Kind<readonly string[]> = listKind(
  'stringArray',
  'stringArray',
  (text) => [text],
  (item) => item,
)

/** An IP address in canonical form; the empty string means none. */
export const ip: Kind<string> = {
  type: 'ip',
  hint: 'ip',
  parse: (text) => (text === '' ? '' : (canonicalAddress(text.trim()) ?? fail(`failed to parse IP: ${goQuote(text)}`))),
  print: (value) => (value === '' ? '<nil>' : value),
  plain: ['<nil>'],
}

export const ips: Kind<readonly string[]> = listKind('ipSlice', 'ipSlice', splitUnquoted, (item) => {
  return canonicalAddress(item.trim()) ?? fail(`invalid string being converted to IP address: ${item}`)
})

/** A CIDR block, host bits cleared; the empty string (as a default) means none. */
export const cidr: Kind<string> = {
  type: 'ipNet',
  hint: 'ipNet',
  parse: (text) => canonicalBlock(text.trim()) ?? fail(`invalid CIDR address: ${text.trim()}`),
  print: (value) => (value === '' ? '<nil>' : value),
  plain: ['<nil>'],
}

export const cidrs: Kind<readonly string[]> = listKind('ipNetSlice', 'ipNetSlice', splitUnquoted, (item) => {
  return canonicalBlock(item.trim()) ?? fail(`invalid string being converted to CIDR: ${item}`)
})

/** `a=1,b=2`; given again it adds keys and replaces those it names. */
export const stringMap: Kind<ReadonlyMap<string, string>> = {
  type: 'stringToString',
  hint: 'stringToString',
  parse: parsePairs,
  print: (value) => `[${writeRecord([...value].map(([key, item]) => `${key}=${item}`).sort())}]`,
  plain: [],
  zero: new Map(),
  join: (before, next) => new Map([...before, ...next]),
  read(field) {
    if (typeof field !== 'object' || field === null || Array.isArray(field)) return fail('must be an object')
    return new Map(Object.entries(field).map(([key, item]) => [key, String(item)]))
  },
}

/** As net.ParseIP takes it and prints it (`::ffff:1.2.3.4` is `1.2.3.4`); undefined when it is none. */
function canonicalAddress(text: string): string | undefined {
  const parsed = parseIp(text, { mapped: true })
  return parsed && formatIp(parsed)
}

/** The block that `text` lies in: `10.1.2.3/8` is `10.0.0.0/8`. Undefined when it is none. */
function canonicalBlock(text: string): string | undefined {
  const parsed = parseCidr(text, { mapped: true })
  return parsed && formatCidr(parsed)
}

function listKind(
  type: string,
  hint: string,
  split: (text: string) => readonly string[],
  item: (text: string) => string,
): Kind<readonly string[]> {
  return {
    type,
    hint,
    parse: (text) => split(text).map(item),
    print: (value) => `[${writeRecord(value)}]`,
    // pflag knows an empty list of strings when it sees one, but no other empty list.
    plain: type.startsWith('string') ? ['[]'] : [],
    zero: [],
    join: (before, next) => [...before, ...next],
    read(field) {
      if (typeof field === 'string') return split(field).map(item)
      if (!Array.isArray(field)) return fail('must be a list')
      return field.map((each) => item(String(each)))
    },
  }
}

function splitRecord(text: string): readonly string[] {
  return text === '' ? [] : readRecord(text)
}

function splitUnquoted(text: string): readonly string[] {
  return splitRecord(text.replaceAll(/["'`]/g, ''))
}

/** A single pair may hold commas; several are CSV, so a value with a comma then needs quotes around the pair. */
function parsePairs(text: string): ReadonlyMap<string, string> {
  const equals = text.split('=').length - 1
  if (equals === 0) return fail(`${text} must be formatted as key=value`)
  const pairs = equals === 1 ? [text.replace(/^"+/, '').replace(/"+$/, '')] : readRecord(text)
  return new Map(pairs.map(splitPair))
}

function splitPair(pair: string): [string, string] {
  const at = pair.indexOf('=')
  return at < 0 ? fail(`${pair} must be formatted as key=value`) : [pair.slice(0, at), pair.slice(at + 1)]
}

function fail(message: string): never {
  throw new Error(message)
}
