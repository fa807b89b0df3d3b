/** Distinguished names of certificates as text. It runs in browsers too. */

export const COMMON_NAME = '2.5.4.3'
export const ORGANIZATION = '2.5.4.10'

/** Short names of the attributes people write; others are shown by their identifier. */
const ATTRIBUTE_NAMES: ReadonlyMap<string, string> = new Map([
  [COMMON_NAME, 'CN'],
  ['2.5.4.5', 'SERIALNUMBER'],
  ['2.5.4.6', 'C'],
  ['2.5.4.7', 'L'],
  ['2.5.4.8', 'ST'],
  ['2.5.4.9', 'STREET'],
  [ORGANIZATION, 'O'],
  ['2.5.4.11', 'OU'],
  ['2.5.4.17', 'POSTALCODE'],
  ['0.9.2342.19200300.100.1.1', 'UID'],
  ['0.9.2342.19200300.100.1.25', 'DC'],
])

export interface NameAttribute {
  readonly oid: string
  readonly value: string
}

/** For people: `CN=kubelet,O=system:nodes`, last part first as RFC 4514 has it. Not for comparing. */
export function formatName({ attributes }: { readonly attributes: readonly NameAttribute[] }): string {
  const parts = attributes.map(({ oid, value }) => {
    return `${ATTRIBUTE_NAMES.get(oid) ?? oid}=${value.replaceAll(/[,+"\\<>;]/g, String.raw`\$&`)}`
  })
  return parts.reverse().join(',')
}
