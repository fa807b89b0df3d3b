/**
 * Encodes and decodes the subject (distinguished name) of a certificate, and its subject alternative names with their
 * types.
 */

import { encodeIp, formatIp } from './address.ts'
import type { DerElement } from './asn1.ts'
import * as asn1 from './asn1.ts'
import { COMMON_NAME, type NameAttribute, ORGANIZATION } from './distinguished-name.ts'
import { X509Error } from './error.ts'

/** Far more than any real certificate has, in its subject or beside it; each costs time. */
const MAX_NAMES = 1000

/** A distinguished name as read. */
export interface Name {
  /** The last common name; empty when there is none. */
  readonly commonName: string
  readonly organizations: readonly string[]
  /** Everything in it, in order, by object identifier. */
  readonly attributes: readonly NameAttribute[]
}

/** The attributes of a name; groups of a Kubernetes user are organizations. */
export interface NameParts {
  readonly commonName: string
  readonly organizations?: readonly string[]
}

export function nameOf(parts: NameParts): Name {
  const organizations = parts.organizations ?? []
  const attributes = organizations.map((value) => ({ oid: ORGANIZATION, value }))
  if (parts.commonName !== '') attributes.push({ oid: COMMON_NAME, value: parts.commonName })
  return { commonName: parts.commonName, organizations, attributes }
}

export function encodeName({ attributes }: Name): Buffer {
  const sets = attributes.map(({ oid, value }) => asn1.setOf(asn1.sequence(asn1.oid(oid), asn1.utf8String(value))))
  return asn1.sequence(...sets)
}

export function readName(found: DerElement | undefined): Name {
  const attributes: NameAttribute[] = []
  for (const set of asn1.expectTag(found, asn1.TAG.sequence, 'Name').children()) {
    for (const pair of asn1.expectTag(set, asn1.TAG.set, 'Part of a name').children()) {
      const [oid, value] = asn1.expectTag(pair, asn1.TAG.sequence, 'Attribute of a name').children()
      attributes.push({ oid: asn1.readOid(oid), value: asn1.readText(value) })
    }
  }
  if (attributes.length > MAX_NAMES)
    throw new X509Error('malformed', `There are more than ${MAX_NAMES} parts in a name`)
  const valuesOf = (wanted: string): string[] =>
    attributes.filter(({ oid }) => oid === wanted).map(({ value }) => value)
  return { commonName: valuesOf(COMMON_NAME).at(-1) ?? '', organizations: valuesOf(ORGANIZATION), attributes }
}

/** Subject alternative names by type. Addresses are in their usual text form. */
export interface AlternativeNames {
  readonly dns: readonly string[]
  readonly ips: readonly string[]
  readonly uris: readonly string[]
  readonly emails: readonly string[]
}

const GENERAL_NAME = { email: 1, dns: 2, uri: 6, ip: 7 } as const

/** Contents of the subjectAltName extension; undefined when there is no name at all. */
export function encodeAlternativeNames(names: Partial<AlternativeNames>): Buffer | undefined {
  const parts = [
    ...(names.dns ?? []).map((name) => asciiName(GENERAL_NAME.dns, name)),
    ...(names.emails ?? []).map((name) => asciiName(GENERAL_NAME.email, name)),
    ...(names.ips ?? []).map((ip) => asn1.element(asn1.contextTag(GENERAL_NAME.ip, false), encodeIp(ip))),
    ...(names.uris ?? []).map((name) => asciiName(GENERAL_NAME.uri, name)),
  ]
  return parts.length === 0 ? undefined : asn1.sequence(...parts)
}

function asciiName(number: number, text: string): Buffer {
  // Anything but printable ASCII, above all NUL, has been used to deceive comparisons of names.
  if (!/^[\x21-\x7e]+$/.test(text)) throw new X509Error('refused', `Name ${JSON.stringify(text)} is empty or not ASCII`)
  return asn1.element(asn1.contextTag(number, false), Buffer.from(text))
}

/** Kinds that nothing here uses (directory names, registered identifiers, …) are skipped. */
export function readAlternativeNames(element: DerElement): AlternativeNames {
  const names = { dns: [] as string[], ips: [] as string[], uris: [] as string[], emails: [] as string[] }
  const found = asn1.expectTag(element, asn1.TAG.sequence, 'Alternative names').children()
  if (found.length > MAX_NAMES) throw new X509Error('malformed', `There are more than ${MAX_NAMES} alternative names`)
  for (const name of found) {
    if (name.tag === asn1.contextTag(GENERAL_NAME.dns, false)) names.dns.push(asn1.readAscii(name))
    else if (name.tag === asn1.contextTag(GENERAL_NAME.email, false)) names.emails.push(asn1.readAscii(name))
    else if (name.tag === asn1.contextTag(GENERAL_NAME.uri, false)) names.uris.push(asn1.readAscii(name))
    else if (name.tag === asn1.contextTag(GENERAL_NAME.ip, false)) names.ips.push(formatIp(name.contents))
  }
  return names
}
