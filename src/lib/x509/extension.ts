/** Encodes and decodes the certificate extensions that this program uses. */
import { createHash } from 'node:crypto'

import type { DerElement } from './asn1.ts'
import * as asn1 from './asn1.ts'
import { X509Error } from './error.ts'
import type { AlternativeNames } from './name.ts'
import { encodeAlternativeNames, readAlternativeNames } from './name.ts'
import { splitUsages, usageName } from './usage.ts'

const OID = {
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  alternativeNames: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyId: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
} as const

/** The extensions of a certificate or request; empty lists and absent members without them. */
export interface Extensions {
  readonly names: AlternativeNames
  /** Key usages and extended key usages by name; an extended usage without a name by its identifier. */
  readonly usages: readonly string[]
  /** True if there are basic constraints, without which the next two are undefined. */
  readonly isConstrained: boolean
  /** True when it may sign other certificates. */
  readonly isAuthority: boolean
  /** How many authorities may follow below it; absent means no limit. */
  readonly pathLength?: number
  readonly subjectKeyId?: Buffer
  readonly authorityKeyId?: Buffer
  /** Identifiers of unknown critical extensions: a verifier must refuse the certificate. */
  readonly unknownCritical: readonly string[]
}

export interface ExtensionPlan {
  readonly names?: Partial<AlternativeNames>
  readonly usages: readonly string[]
  /** Present for an authority. */
  readonly authority?: { readonly pathLength?: number }
  /** Whether the subject is empty, in which case the alternative names are critical (RFC 5280 4.2.1.6). */
  readonly hasEmptySubject: boolean
}

function extension(oid: string, critical: boolean, contents: Buffer): Buffer {
  return asn1.sequence(asn1.oid(oid), ...(critical ? [asn1.boolean(true)] : []), asn1.octetString(contents))
}

/** Usages and names: what a request asks for, and the first part of what a certificate says. */
export function encodeRequestedExtensions(plan: ExtensionPlan): Buffer[] {
  const { bits, oids } = splitUsages(plan.usages)
  const names = encodeAlternativeNames(plan.names ?? {})
  const out: Buffer[] = []
  if (bits.length > 0) out.push(extension(OID.keyUsage, true, asn1.flagBits(bits)))
  if (oids.length > 0) {
    out.push(extension(OID.extendedKeyUsage, false, asn1.sequence(...oids.map((oid) => asn1.oid(oid)))))
  }
  if (names !== undefined) out.push(extension(OID.alternativeNames, plan.hasEmptySubject, names))
  return out
}

/** All extensions of a certificate, in a SEQUENCE. Basic constraints are always there and critical. */
export function encodeExtensions(plan: ExtensionPlan, keyIds: { subject: Buffer; authority?: Buffer }): Buffer {
  const { authority } = plan
  const limit = authority?.pathLength === undefined ? [] : [asn1.integer(authority.pathLength)]
  const constraints = authority === undefined ? asn1.sequence() : asn1.sequence(asn1.boolean(true), ...limit)
  const out = [
    ...encodeRequestedExtensions(plan),
    extension(OID.basicConstraints, true, constraints),
    extension(OID.subjectKeyId, false, asn1.octetString(keyIds.subject)),
  ]
  if (keyIds.authority !== undefined) {
    const id = asn1.element(asn1.contextTag(0, false), keyIds.authority)
    out.push(extension(OID.authorityKeyId, false, asn1.sequence(id)))
  }
  return asn1.sequence(...out)
}

/** Key identifier by RFC 7093, method 1: the first 160 bits of the SHA-256 of the public key's bits. */
export function keyIdOf(publicKeyInfo: Buffer): Buffer {
  const bits = asn1.readBitString(asn1.readDer(publicKeyInfo).children()[1])
  return createHash('sha256').update(bits).digest().subarray(0, 20)
}

/** More extensions than any certificate has. */
const MAX_EXTENSIONS = 64

/** Reads extensions. A repeated one is refused. */
export function readExtensions(list: readonly DerElement[]): Extensions {
  const state: Mutable<Extensions> = {
    names: { dns: [], ips: [], uris: [], emails: [] },
    usages: [],
    isConstrained: false,
    isAuthority: false,
    unknownCritical: [],
  }
  if (list.length > MAX_EXTENSIONS) throw new X509Error('malformed', `There are more than ${MAX_EXTENSIONS} extensions`)
  const seen = new Set<string>()
  for (const one of list) {
    const parts = asn1.expectTag(one, asn1.TAG.sequence, 'Extension').children()
    const oid = asn1.readOid(parts[0])
    if (seen.has(oid)) throw new X509Error('malformed', `Extension ${oid} stands there twice`)
    seen.add(oid)
    const critical = parts.length === 3 && asn1.readBoolean(parts[1])
    const value = asn1.expectTag(parts.at(-1), asn1.TAG.octetString, 'Value of an extension')
    readOne(state, { oid, critical, value: value.contents })
  }
  return state
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

function readOne(state: Mutable<Extensions>, found: { oid: string; critical: boolean; value: Buffer }): void {
  switch (found.oid) {
    case OID.subjectKeyId:
      state.subjectKeyId = asn1.expectTag(asn1.readDer(found.value), asn1.TAG.octetString, 'Key identifier').contents
      return
    case OID.keyUsage:
      state.usages = [...asn1.readFlagBits(asn1.readDer(found.value)).map(usageName), ...state.usages]
      return
    case OID.alternativeNames:
      state.names = readAlternativeNames(asn1.readDer(found.value))
      return
    case OID.basicConstraints:
      return readBasicConstraints(state, asn1.readDer(found.value))
    case OID.authorityKeyId: {
      const id = asn1.readDer(found.value).children()[0]
      if (id?.tag === asn1.contextTag(0, false)) state.authorityKeyId = id.contents
      return
    }
    case OID.extendedKeyUsage: {
      const oids = asn1.readDer(found.value).children().map(asn1.readOid)
      state.usages = [...state.usages, ...oids.map(usageName)]
      return
    }
    default:
      if (found.critical) state.unknownCritical = [...state.unknownCritical, found.oid]
  }
}

function readBasicConstraints(state: Mutable<Extensions>, found: DerElement): void {
  const parts = found.children()
  const authority = parts[0]?.tag === asn1.TAG.boolean ? asn1.readBoolean(parts.shift()) : false
  state.isConstrained = true
  state.isAuthority = authority
  if (authority && parts[0] !== undefined) state.pathLength = asn1.readSmallInteger(parts[0])
}
