/**
 * Usages of a certificate, by the names that cfssl and Kubernetes give the key usages and extended key usages of RFC
 * 5280. One list of names covers both extensions.
 */
import { X509Error } from './error.ts'

/** Bit number in the KeyUsage extension, or object identifier in ExtendedKeyUsage. First name of a value: its own. */
const TABLE = {
  'digital signature': 0,
  signing: 0,
  'content commitment': 1,
  'key encipherment': 2,
  'data encipherment': 3,
  'key agreement': 4,
  'cert sign': 5,
  'crl sign': 6,
  'encipher only': 7,
  'decipher only': 8,
  any: '2.5.29.37.0',
  'server auth': '1.3.6.1.5.5.7.3.1',
  'client auth': '1.3.6.1.5.5.7.3.2',
  'code signing': '1.3.6.1.5.5.7.3.3',
  'email protection': '1.3.6.1.5.5.7.3.4',
  's/mime': '1.3.6.1.5.5.7.3.4',
  'ipsec end system': '1.3.6.1.5.5.7.3.5',
  'ipsec tunnel': '1.3.6.1.5.5.7.3.6',
  'ipsec user': '1.3.6.1.5.5.7.3.7',
  timestamping: '1.3.6.1.5.5.7.3.8',
  'ocsp signing': '1.3.6.1.5.5.7.3.9',
  'microsoft sgc': '1.3.6.1.4.1.311.10.3.3',
  'netscape sgc': '2.16.840.1.113730.4.1',
} as const

export type Usage = keyof typeof TABLE

const BY_NAME: ReadonlyMap<string, number | string> = new Map(Object.entries(TABLE))
/** Reversed first, so that the first name of a value wins over its synonyms. */
const BY_VALUE: ReadonlyMap<number | string, string> = new Map(
  [...BY_NAME].reverse().map(([name, value]) => [value, name]),
)

/** The two extensions for a list of names, without repetition, in the order of the table. Throws for unknown names. */
export function splitUsages(usages: readonly string[]): { bits: number[]; oids: string[] } {
  const unknown = usages.filter((name) => !BY_NAME.has(name))
  if (unknown.length > 0) {
    const names = unknown.map((name) => JSON.stringify(name)).join(' ')
    throw new X509Error('refused', `unrecognized usage values: [${names}]`)
  }
  const wanted = new Set(usages.map((name) => BY_NAME.get(name)))
  const values = [...BY_VALUE.keys()].reverse().filter((value) => wanted.has(value))
  return {
    bits: values.filter((value) => typeof value === 'number'),
    oids: values.filter((value) => typeof value === 'string'),
  }
}

/** The name of a KeyUsage bit or ExtendedKeyUsage identifier; an unknown identifier is returned unchanged. */
export function usageName(value: number | string): string {
  return BY_VALUE.get(value) ?? String(value)
}
