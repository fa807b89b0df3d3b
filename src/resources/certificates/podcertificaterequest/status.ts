/**
 * Validates the status of a pod certificate request. It changes once, to issued, denied or failed. An issued chain must
 * match the requested key, begin now and not exceed the maximum duration.
 */
import { KeyObject } from 'node:crypto'

import type { PodCertificateRequest, PodCertificateRequestStatus } from '#apis/certificates/v1beta1.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { byteLength } from '#lib/go/text.ts'
import { type Certificate, parseCertificate } from '#lib/x509/certificate.ts'
import { isSameKey } from '#lib/x509/key.ts'
import { type AnyCondition, isConditionTrue, validateConditions } from '#meta/conditions.ts'
import { semanticEqual } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'
import {
  asJson,
  collectErrors,
  type FieldError,
  fieldPath,
  type FieldPath,
  omitted,
} from '#meta/validation/field-path.ts'

import { findPemBlocks, type FoundBlock } from '../pem-blocks.ts'
import { readRequestedKey } from './keys.ts'

const outcomes = ['Issued', 'Denied', 'Failed']

const CHAIN = fieldPath('status.certificateChain')
const NOT_BEFORE = fieldPath('status.notBefore')
const NOT_AFTER = fieldPath('status.notAfter')
const BEGIN_REFRESH = fieldPath('status.beginRefreshAt')

const MAX_CHAIN_BYTES = 100 << 10
const MINUTE_MS = 60_000
/** The allowed clock skew of the signer. */
const MAX_SKEW_MS = 5 * MINUTE_MS
/** The refresh time must be before the expiry and not immediate. */
const REFRESH_MARGIN_MS = 10 * MINUTE_MS
const MIN_LIFETIME_MS = 60 * MINUTE_MS

export function validateStatusUpdate(
  next: PodCertificateRequest,
  old: PodCertificateRequest,
  context: Pick<RuleContext, 'clock'>,
): FieldError[] {
  const { conditions = [] } = next.status ?? {}
  const errors = [
    ...validateOutcomes(conditions),
    ...validateConditions(fieldPath('status.conditions'), conditions as Parameters<typeof validateConditions>[1]),
  ]
  if (errors.length > 0) return errors
  const keep = (is: unknown, detail: string): FieldError[] =>
    semanticEqual(next.status ?? {}, is ?? {}) ? [] : [fieldPath('status').invalid(omitted, detail)]
  if (outcomes.some((type) => isConditionTrue(old.status?.conditions, type))) {
    return keep(old.status, 'immutable after PodCertificateRequest is issued, denied, or failed')
  }
  if (isConditionTrue(conditions, 'Issued')) return validateIssued(next, old, context)
  if (isConditionTrue(conditions, 'Denied') || isConditionTrue(conditions, 'Failed')) {
    const detail = 'non-condition status fields must be empty when denying or failing the PodCertificateRequest'
    return keep({ conditions }, detail)
  }
  return keep(old.status, 'status is immutable unless transitioning to "Issued", "Denied", or "Failed"')
}

/** Upstream writes a dot before the index. */
function validateOutcomes(conditions: readonly AnyCondition[]): FieldError[] {
  const known = conditions.filter(({ type }) => outcomes.includes(type))
  return conditions.flatMap((condition, at) => {
    const { type, status } = condition
    const path = fieldPath(`status.conditions.[${at}]`)
    if (!outcomes.includes(type)) return [path.child('type').notSupported(type, outcomes)]
    const detail = 'There may be at most one condition with type "Issued", "Denied", or "Failed"'
    return collectErrors(
      known.indexOf(condition) > 0 && path.child('type').invalid(type, detail),
      status !== 'True' && path.child('status').notSupported(asJson(status), ['True']),
    )
  })
}

function validateIssued(
  { spec, status }: PodCertificateRequest,
  old: PodCertificateRequest,
  { clock }: Pick<RuleContext, 'clock'>,
): FieldError[] {
  const { certificateChain: chain = '' } = status
  if (byteLength(chain) > MAX_CHAIN_BYTES) return [CHAIN.tooLong(MAX_CHAIN_BYTES)]
  const [first, ...rest] = findPemBlocks(chain)
  const leaf = readLeaf(first)
  if (typeof leaf === 'string') return [CHAIN.invalid(chain, leaf)]
  const names = validateNames(leaf)
  const key = readRequestedKey(old.spec)
  if (!(key instanceof KeyObject)) return [...names, key]
  if (!isSameKey(key, leaf.publicKey)) {
    return [...names, CHAIN.invalid(chain, 'leaf certificate was not issued to the requested public key')]
  }
  const missing = validateTimesPresent(status)
  if (names.length > 0 || missing.length > 0) return [...names, ...missing]
  const wrong = timeError(status, leaf, { nowMs: clock.now(), maxSeconds: spec.maxExpirationSeconds ?? 0 })
  if (wrong !== undefined) return [wrong]
  const complaint = intermediateComplaint(rest)
  return complaint === undefined ? [] : [CHAIN.invalid(chain, complaint)]
}

function readLeaf(block: FoundBlock | undefined): Certificate | string {
  if (block === undefined) return 'issued certificate chain must contain at least one certificate'
  if (block.label !== 'CERTIFICATE') {
    return 'issued certificate chain must consist entirely of CERTIFICATE PEM blocks'
  }
  return tryParse(block) ?? 'leaf certificate does not parse as valid X.509'
}

function tryParse({ bytes }: FoundBlock): Certificate | undefined {
  try {
    return parseCertificate(bytes)
  } catch {
    return undefined
  }
}

/** Only the form of the other certificates is validated: the chain lacks its root. The misspelling is upstream's. */
function intermediateComplaint(blocks: readonly FoundBlock[]): string | undefined {
  for (const block of blocks) {
    if (block.label !== 'CERTIFICATE') {
      return 'issued certificate chain must consist entirely of CERTFICATE PEM blocks'
    }
    if (tryParse(block) === undefined) return 'intermediate certificate does not parse as valid X.509'
  }
  return undefined
}

/** Names that have caused bugs in programs. */
function validateNames({ names }: Certificate): FieldError[] {
  const dns = names.dns.flatMap((name) => {
    const complaints = [
      ...(name === '' ? ['leaf certificate should not contain empty DNSName'] : []),
      ...(name.includes('..') ? ["leaf certificate's DNSName should not contain '..'"] : []),
      ...(name.startsWith('.') || name.endsWith('.')
        ? ["leaf certificate's DNSName should not start or end with '.'"]
        : []),
    ]
    return complaints.map((complaint) => CHAIN.invalid(name, complaint))
  })
  const emails = names.emails.filter((address) => !isMailAddress(address))
  const detail = 'leaf certificate should not contain invalid EmailAddress'
  return [...dns, ...emails.map((address) => CHAIN.invalid(address, detail))]
}

const ATOM = "[\\w!#$%&'*+/=?^`{|}~-]+"
const DOTTED = `${ATOM}(?:\\.${ATOM})*`
const MAIL_ADDRESS = new RegExp(`^${DOTTED}@(?:${DOTTED}|\\[[^\\[\\]\\\\\\s]+\\])$`)

/** A plain address; RFC 5322's quoted local parts and comments do not occur in certificates. */
function isMailAddress(text: string): boolean {
  return MAIL_ADDRESS.test(text)
}

function validateTimesPresent({ notBefore, notAfter, beginRefreshAt }: PodCertificateRequestStatus): FieldError[] {
  const consistent = 'must be present and consistent with the issued certificate'
  return collectErrors(
    notBefore === undefined && NOT_BEFORE.required(consistent),
    notAfter === undefined && NOT_AFTER.required(consistent),
    beginRefreshAt === undefined &&
      BEGIN_REFRESH.required('must be present and in the range [notbefore+10min, notafter-10min]'),
  )
}

interface Bounds {
  readonly nowMs: number
  readonly maxSeconds: number
}

/** The first error of the times; all three are present. */
function timeError(status: PodCertificateRequestStatus, leaf: Certificate, bounds: Bounds): FieldError | undefined {
  const { notBefore = '', notAfter = '', beginRefreshAt = '' } = status
  const [from, to, refresh] = [notBefore, notAfter, beginRefreshAt].map(epochMsOf) as [number, number, number]
  const lifetimeMs = leaf.notAfterMs - leaf.notBeforeMs
  const lifetime = asJson(lifetimeMs * 1_000_000)
  const checks: readonly (readonly [isWrong: boolean, path: FieldPath, value: unknown, detail: string])[] = [
    [
      from !== leaf.notBeforeMs,
      NOT_BEFORE,
      notBefore,
      'must be set to the NotBefore time encoded in the leaf certificate',
    ],
    [
      Math.abs(from - bounds.nowMs) >= MAX_SKEW_MS,
      NOT_BEFORE,
      notBefore,
      "must be set to within 5 minutes of kube-apiserver's current time",
    ],
    [to !== leaf.notAfterMs, NOT_AFTER, notAfter, 'must be set to the NotAfter time encoded in the leaf certificate'],
    [lifetimeMs < MIN_LIFETIME_MS, CHAIN, lifetime, 'leaf certificate lifetime must be >= 1 hour'],
    [
      lifetimeMs > bounds.maxSeconds * 1000,
      CHAIN,
      lifetime,
      `leaf certificate lifetime must be <= spec.maxExpirationSeconds (${bounds.maxSeconds})`,
    ],
    [
      refresh < from + REFRESH_MARGIN_MS,
      BEGIN_REFRESH,
      beginRefreshAt,
      'must be at least 10 minutes after status.notBefore',
    ],
    [
      refresh > to - REFRESH_MARGIN_MS,
      BEGIN_REFRESH,
      beginRefreshAt,
      'must be at least 10 minutes before status.notAfter',
    ],
  ]
  const first = checks.find(([isWrong]) => isWrong)
  return first === undefined ? undefined : first[1].invalid(first[2], first[3])
}
