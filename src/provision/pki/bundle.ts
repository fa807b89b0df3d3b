/**
 * Creates and renews the certificates of a cluster. Valid ones stay unchanged, so that a second run changes nothing.
 * Invalid ones are reissued with the same key; only a rotation creates new keys.
 */
import type { KeyObject } from 'node:crypto'

import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import { type Authority, createAuthority, loadAuthority } from '#lib/x509/authority.ts'
import { type Certificate, isExpired, parseBundle, parseCertificate } from '#lib/x509/certificate.ts'
import { verifyChain } from '#lib/x509/chain.ts'
import { createKey, isSameKey, parsePrivateKey } from '#lib/x509/key.ts'

import type { ClusterFile } from '../cluster.ts'
import { ETCD_CLIENT, ETCD_CLIENT_CA, type PlannedCertificate, planCertificates, type RotatedService } from './plan.ts'

/** One certificate and its key as PEM. An authority may be followed by its predecessor, which is still trusted. */
export interface BundleEntry {
  readonly certificatePEM: string
  /** Empty: an external authority, which cannot sign. */
  readonly keyPEM: string
  /** Given by the operator: it is replaced only by rotation. */
  readonly custom?: true
}

export type Bundle = Readonly<Record<string, BundleEntry>>

/** The reasons for a changed certificate. */
export type Reason = 'new' | 'names' | 'subject' | 'signer' | 'expired' | 'rotated' | 'dropped'

export interface BundleChange {
  readonly name: string
  readonly reason: Reason
}

export interface CompletedBundle {
  readonly bundle: Bundle
  readonly changes: readonly BundleChange[]
}

export interface PkiTools {
  readonly clock: Clock
  readonly random: Random
}

/** `authority`: its key is needed but missing. `expired`: only a rotation of the authorities helps. */
export type PkiErrorCode = 'authority' | 'expired' | 'unreadable'

export class PkiError extends Error {
  readonly code: PkiErrorCode

  constructor(code: PkiErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'PkiError'
    this.code = code
  }
}

const TEN_YEARS_MS = 10 * 365 * 24 * 3_600_000

/** Completes the bundle from the existing certificates. Throws PkiError. */
export function completeBundle(cluster: ClusterFile, old: Bundle, tools: PkiTools): CompletedBundle {
  const plans = planCertificates(cluster)
  const bundle: Record<string, BundleEntry> = {}
  const changes: BundleChange[] = []
  for (const plan of plans) {
    const made = completeOne(plan, old[plan.name], { ...tools, signer: bundle[plan.signer] })
    bundle[plan.name] = made.entry
    if (made.reason) changes.push({ name: plan.name, reason: made.reason })
  }
  const given = externalEtcd(cluster)
  for (const [name, entry] of Object.entries(given)) {
    bundle[name] = entry
    if (old[name]?.certificatePEM !== entry.certificatePEM) changes.push({ name, reason: 'new' })
  }
  for (const name of Object.keys(old)) if (!bundle[name]) changes.push({ name, reason: 'dropped' })
  return { bundle, changes }
}

function externalEtcd({ services: { etcd } }: ClusterFile): Bundle {
  if (etcd.external_urls.length === 0) return {}
  return {
    [ETCD_CLIENT_CA]: { certificatePEM: etcd.ca_cert, keyPEM: '' },
    [ETCD_CLIENT]: { certificatePEM: etcd.cert, keyPEM: etcd.key },
  }
}

interface SigningContext extends PkiTools {
  /** The completed authority; undefined for a self-signed one. */
  readonly signer: BundleEntry | undefined
}

interface CompletedEntry {
  readonly entry: BundleEntry
  readonly reason?: Reason
}

function completeOne(plan: PlannedCertificate, old: BundleEntry | undefined, making: SigningContext): CompletedEntry {
  const found = old && readEntry(plan, old)
  if (found?.entry.custom) return { entry: found.entry }
  if (plan.purpose === 'authority') return completeAuthority(plan, found, making)
  const reason = found ? faultOf(plan, found, making) : 'new'
  if (found && reason === undefined) return { entry: found.entry }
  return { entry: issue(plan, found?.key, making), ...(reason ? { reason } : {}) }
}

interface FoundEntry {
  readonly entry: BundleEntry
  readonly certificate: Certificate
  readonly key: KeyObject | undefined
}

/** Throws for an unreadable certificate, because a silent replacement could lose data that is still needed. */
function readEntry(plan: PlannedCertificate, entry: BundleEntry): FoundEntry {
  try {
    const certificate = parseCertificate(entry.certificatePEM)
    const key = entry.keyPEM === '' ? undefined : parsePrivateKey(entry.keyPEM)
    if (key && !isSameKey(certificate.publicKey, key)) throw new Error('The key does not belong to the certificate')
    return { entry, certificate, key }
  } catch (cause) {
    throw new PkiError('unreadable', `Certificate "${plan.name}" of the state cannot be read; rotate it`, { cause })
  }
}

/** An authority is never replaced implicitly, because the whole cluster depends on it. */
function completeAuthority(plan: PlannedCertificate, found: FoundEntry | undefined, tools: PkiTools): CompletedEntry {
  if (!found) {
    const made = createAuthority({ commonName: plan.commonName, validityMs: TEN_YEARS_MS }, tools)
    return { entry: { certificatePEM: made.certificatePem, keyPEM: made.keyPem }, reason: 'new' }
  }
  if (isExpired(found.certificate, tools.clock.now())) {
    const end = new Date(found.certificate.notAfterMs).toISOString()
    throw new PkiError(
      'expired',
      `Authority "${plan.name}" expired at ${end}; create new ones with "cert rotate --rotate-ca"`,
    )
  }
  return { entry: found.entry }
}

function faultOf(
  plan: PlannedCertificate,
  { certificate }: FoundEntry,
  { signer, clock }: SigningContext,
): Reason | undefined {
  const { subject, names } = certificate
  if (subject.commonName !== plan.commonName || !isSame(subject.organizations, plan.organizations)) return 'subject'
  if (!isSame(names.dns, plan.names.dns) || !isSame(names.ips, plan.names.ips)) return 'names'
  if (isExpired(certificate, clock.now())) return 'expired'
  return isSignedBy(certificate, signer as BundleEntry, clock.now()) ? undefined : 'signer'
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  const left = new Set(one)
  return left.size === new Set(other).size && other.every((name) => left.has(name))
}

/** Signed by the current authority; a signature of its predecessor does not suffice. */
function isSignedBy(certificate: Certificate, signer: BundleEntry, nowMs: number): boolean {
  try {
    verifyChain(certificate, { roots: [parseCertificate(signer.certificatePEM)], nowMs, usage: 'client auth' })
    return true
  } catch {
    return false
  }
}

function issue(
  plan: PlannedCertificate,
  key: KeyObject | undefined,
  { signer, ...tools }: SigningContext,
): BundleEntry {
  const issued = authorityOf(plan, signer as BundleEntry, tools).issue({
    commonName: plan.commonName,
    organizations: plan.organizations,
    names: plan.names,
    purpose: plan.purpose,
    validityMs: TEN_YEARS_MS,
    key: key ?? createKey(),
  })
  return { certificatePEM: issued.certificatePem, keyPEM: issued.keyPem }
}

function authorityOf(plan: PlannedCertificate, signer: BundleEntry, tools: PkiTools): Authority {
  if (signer.keyPEM === '') {
    throw new PkiError(
      'authority',
      `Certificate "${plan.name}" must be signed, and there is no key of "${plan.signer}"; add it or the certificate to the folder of custom certificates`,
    )
  }
  return loadAuthority({ certificate: signer.certificatePEM, key: signer.keyPEM }, tools)
}

/** Everything, one service, or everything including the authorities. */
export interface Rotation {
  readonly service?: RotatedService
  readonly authorities?: boolean
}

/**
 * New certificates with new keys. The service account key stays, so that tokens remain valid. After a rotation the old
 * authorities are still trusted, so that machines can change one after another: see `settleBundle`.
 */
export function rotateBundle(cluster: ClusterFile, old: Bundle, rotation: Rotation, tools: PkiTools): CompletedBundle {
  const plans = planCertificates(cluster)
  const isRotated = (plan: PlannedCertificate): boolean => {
    if (plan.keepsKey) return false
    if (plan.purpose === 'authority') return rotation.authorities === true
    return rotation.service === undefined || rotation.authorities === true || plan.service === rotation.service
  }
  const rotated = new Set(plans.filter(isRotated).map(({ name }) => name))
  const kept = Object.fromEntries(Object.entries(old).filter(([name]) => !rotated.has(name)))
  const { bundle, changes } = completeBundle(cluster, kept, tools)
  return {
    bundle: rotation.authorities ? trustBoth(plans, bundle, old) : bundle,
    changes: changes.map((change) =>
      old[change.name] && change.reason === 'new' ? { ...change, reason: 'rotated' } : change,
    ),
  }
}

function trustBoth(plans: readonly PlannedCertificate[], bundle: Bundle, old: Bundle): Bundle {
  const authorities = plans.filter(({ purpose }) => purpose === 'authority')
  const both = authorities.flatMap(({ name }): [string, BundleEntry][] => {
    const [now, before] = [bundle[name], old[name]]
    if (!now || !before || before.certificatePEM === '') return []
    return [[name, { ...now, certificatePEM: `${now.certificatePEM}${parseCertificate(before.certificatePEM).pem}` }]]
  })
  return { ...bundle, ...Object.fromEntries(both) }
}

/** Without the old authorities: for the time when every machine has certificates of the new ones. */
export function settleBundle(cluster: ClusterFile, bundle: Bundle): Bundle {
  const authorities = planCertificates(cluster).filter(({ purpose }) => purpose === 'authority')
  const settled = authorities.flatMap(({ name }): [string, BundleEntry][] => {
    const entry = bundle[name]
    return entry ? [[name, { ...entry, certificatePEM: parseCertificate(entry.certificatePEM).pem }]] : []
  })
  return { ...bundle, ...Object.fromEntries(settled) }
}

/** True if old authorities are still trusted. */
export function isSettling(bundle: Bundle): boolean {
  return Object.entries(bundle).some(
    ([name, entry]) => name.endsWith('-ca') && name !== ETCD_CLIENT_CA && parseBundle(entry.certificatePEM).length > 1,
  )
}
