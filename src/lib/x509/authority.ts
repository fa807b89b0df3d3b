/** A certificate authority: its certificate and key, and the certificates that it signs. */
import type { KeyObject } from 'node:crypto'

import type { Clock } from '../clock.ts'
import type { Random } from '../random.ts'
import type { Certificate, CertificatePlan } from './certificate.ts'
import { isExpired, parseCertificate, signCertificate } from './certificate.ts'
import { X509Error } from './error.ts'
import type { KeyType } from './key.ts'
import { checkKey, createKey, isSameKey, keyToPem, parsePrivateKey } from './key.ts'
import type { AlternativeNames, NameParts } from './name.ts'
import { nameOf } from './name.ts'
import type { CertificateRequest } from './request.ts'
import { verifyRequest } from './request.ts'
import type { Usage } from './usage.ts'

/** Certificates become valid this much earlier, for machines whose clocks are behind. As kube-controller-manager. */
const BACKDATE_MS = 5 * 60_000

/** Below this lifetime the backdating does not shorten it. */
const SHORT_LIFE_MS = 8 * 3_600_000

const YEAR_MS = 365 * 24 * 3_600_000

export interface AuthorityPlan extends NameParts {
  /** Ten years by default. */
  readonly validityMs?: number
  /** The number of further authorities below; unlimited by default. */
  readonly pathLength?: number
  /** The key; a new P-256 key by default. */
  readonly key?: KeyObject
}

export interface IssuePlan extends NameParts {
  readonly names?: Partial<AlternativeNames>
  /** `peer` is both server and client, as etcd's members are to each other. */
  readonly purpose: 'server' | 'client' | 'peer' | 'authority'
  /** One year by default; never beyond the authority's expiry. */
  readonly validityMs?: number
  /** The key to certify (the public half suffices); a new one of `keyType` by default. */
  readonly key?: KeyObject
  readonly keyType?: KeyType
  /** For purpose `authority`: the number of further authorities below; unlimited by default. */
  readonly pathLength?: number
}

export interface SignPlan {
  /** The usages of the certificate, whatever the request contains. */
  readonly usages: readonly string[]
  readonly validityMs: number
}

/** A certificate with the private key it was issued for; empty when only the public half was known. */
export interface Issued {
  readonly certificate: Certificate
  readonly certificatePem: string
  readonly keyPem: string
}

/** All methods throw `X509Error`: `expired` when the authority's own time is over, `refused` for what it may not do. */
export interface Authority {
  readonly certificate: Certificate
  readonly certificatePem: string
  readonly keyPem: string
  /** Makes a certificate, and its key unless one is given. */
  issue(plan: IssuePlan): Issued
  /**
   * Signs a request after checking that its author has the private key. Subject and alternative names come from the
   * request, usages and lifetime from the plan; other requested extensions are ignored. It never makes an authority.
   * The caller must check the names before.
   */
  sign(request: CertificateRequest, plan: SignPlan): Certificate
  /** The same subject, names, usages and length of life again from now on, with a new P-256 key unless one is given. */
  renew(certificate: Certificate, key?: KeyObject): Issued
}

export interface AuthorityTools {
  readonly clock: Clock
  readonly random: Random
}

/** A new self-signed authority. */
export function createAuthority(plan: AuthorityPlan, tools: AuthorityTools): Authority {
  const key = plan.key ?? createKey()
  checkKey(key)
  const nowMs = wholeSecond(tools.clock.now())
  const certificate = signCertificate(
    {
      subject: nameOf(plan),
      key,
      usages: AUTHORITY_USAGES,
      authority: limitOf(plan.pathLength),
      notBeforeMs: nowMs - BACKDATE_MS,
      notAfterMs: nowMs + (plan.validityMs ?? 10 * YEAR_MS),
    },
    { key },
    tools.random,
  )
  return authorityOf(certificate, key, tools)
}

/**
 * Reads an authority from its PEM texts. Throws if the key belongs to another certificate, or if the certificate says
 * that it may not sign. One of version 1 has no extension to say so, and Go's programs sign with it.
 */
export function loadAuthority(pem: { certificate: string; key: string }, tools: AuthorityTools): Authority {
  const certificate = parseCertificate(pem.certificate)
  const key = parsePrivateKey(pem.key)
  const who = `"${certificate.subject.commonName}"`
  if (!isSameKey(certificate.publicKey, key))
    throw new X509Error('key', `The key does not belong to certificate ${who}`)
  if (!certificate.isAuthority && certificate.version >= 3)
    throw new X509Error('refused', `Certificate ${who} may not sign certificates`)
  return authorityOf(certificate, key, tools)
}

const AUTHORITY_USAGES: readonly Usage[] = ['digital signature', 'key encipherment', 'cert sign']

function limitOf(pathLength: number | undefined): { pathLength?: number } {
  return pathLength === undefined ? {} : { pathLength }
}

function usagesFor(purpose: IssuePlan['purpose'], key: KeyObject): readonly Usage[] {
  if (purpose === 'authority') return AUTHORITY_USAGES
  // Only RSA keys are ever used to encrypt another key (in TLS 1.2 without forward secrecy).
  const base: Usage[] =
    key.asymmetricKeyType === 'rsa' ? ['digital signature', 'key encipherment'] : ['digital signature']
  if (purpose !== 'client') base.push('server auth')
  if (purpose !== 'server') base.push('client auth')
  return base
}

function authorityOf(certificate: Certificate, key: KeyObject, { clock, random }: AuthorityTools): Authority {
  const signer = { key, certificate }
  const finish = (plan: Omit<CertificatePlan, 'notBeforeMs' | 'notAfterMs'>, validityMs: number): Certificate => {
    checkKey(plan.key)
    return signCertificate({ ...plan, ...planValidity(certificate, clock.now(), validityMs) }, signer, random)
  }
  return {
    certificate,
    certificatePem: certificate.pem,
    keyPem: keyToPem(key),
    issue(plan) {
      if (plan.purpose === 'authority') checkMayDelegate(certificate, plan.pathLength)
      const subjectKey = plan.key ?? createKey(plan.keyType)
      const issued = finish(
        {
          subject: nameOf(plan),
          key: subjectKey,
          names: plan.names ?? {},
          usages: usagesFor(plan.purpose, subjectKey),
          ...(plan.purpose === 'authority' ? { authority: limitOf(plan.pathLength) } : {}),
        },
        plan.validityMs ?? YEAR_MS,
      )
      return issuedOf(issued, subjectKey)
    },
    sign(request, { usages, validityMs }) {
      verifyRequest(request)
      const { subject, publicKey, names } = request
      return finish({ subject, key: publicKey, names, usages }, validityMs)
    },
    renew(old, subjectKey = createKey()) {
      if (old.isAuthority) throw new X509Error('refused', 'An authority is not renewed this way; issue a new one')
      const { subject, names, usages } = old
      return issuedOf(finish({ subject, key: subjectKey, names, usages }, old.notAfterMs - old.notBeforeMs), subjectKey)
    },
  }
}

function issuedOf(certificate: Certificate, key: KeyObject): Issued {
  return { certificate, certificatePem: certificate.pem, keyPem: key.type === 'private' ? keyToPem(key) : '' }
}

/** Backdated, and never longer than the authority itself lives. */
function planValidity(
  issuer: Certificate,
  now: number,
  validityMs: number,
): { notBeforeMs: number; notAfterMs: number } {
  const nowMs = wholeSecond(now)
  if (isExpired(issuer, now)) {
    const end = new Date(issuer.notAfterMs).toISOString()
    throw new X509Error('expired', `Authority "${issuer.subject.commonName}" has expired at ${end}; make a new one`)
  }
  if (!(validityMs > 0)) throw new X509Error('refused', `A certificate cannot be valid for ${validityMs} ms`)
  const endMs = nowMs + validityMs - (validityMs < SHORT_LIFE_MS ? 0 : BACKDATE_MS)
  return { notBeforeMs: nowMs - BACKDATE_MS, notAfterMs: Math.min(endMs, issuer.notAfterMs) }
}

function checkMayDelegate({ pathLength, subject }: Certificate, wanted: number | undefined): void {
  if (pathLength === undefined) return
  if (wanted === undefined || wanted >= pathLength) {
    throw new X509Error('refused', `Authority "${subject.commonName}" allows only ${pathLength} authorities below it`)
  }
}

function wholeSecond(ms: number): number {
  return Math.floor(ms / 1000) * 1000
}
