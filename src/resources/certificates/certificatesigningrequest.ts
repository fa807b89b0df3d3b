/** The CertificateSigningRequest resource: a client requests a certificate, an approver decides, the signer signs. */
import {
  type CertificateSigningRequest,
  CertificateSigningRequests,
  type CertificateSigningRequestStatus,
} from '#apis/certificates/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import type { User } from '#auth/user.ts'
import { humanDuration } from '#meta/duration.ts'
import { timeOf } from '#meta/time.ts'
import { nameIsPathSegment } from '#meta/validation/names.ts'
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'

import { createIssueMeter } from './issue-metrics.ts'
import { validateNew, validateChange } from './validation.ts'

type Conditions = NonNullable<CertificateSigningRequestStatus['conditions']>

export function defineCertificateSigningRequest(
  meters: ServerMeters = createServerMeters(),
): Resource<CertificateSigningRequest> {
  const issued = createIssueMeter(meters)
  return defineResource<CertificateSigningRequest>({
    kind: CertificateSigningRequests,
    allocate: (next, old, { dryRun }) =>
      Promise.resolve((written) => Promise.resolve(written && !dryRun ? issued(next, old) : undefined)),
    metadataRules: { update: ['whole', 'change'], part: ['whole', 'change'] },
    nameRule: nameIsPathSegment,
    prepareCreate: ({ spec }, { user }) => setRequester(spec, user),
    prepareUpdate(next, old) {
      next.spec = old.spec
    },
    validate: validateNew,
    validateUpdate: (next, old) => validateChange(next, old, {}),
    resets: ['spec', 'status'],
    status: {
      keeps: ['spec'],
      resets: ['spec', 'status.conditions'],
      prepareUpdate(next, old, context) {
        keepDecisions(next.status.conditions ?? [], old.status.conditions ?? [])
        setTimes(next, old, context)
      },
      validateUpdate: (next, old) => validateChange(next, old, { setsCertificate: true }),
    },
    parts: {
      approval: {
        keeps: ['spec', 'status.certificate'],
        prepareUpdate: setTimes,
        validateUpdate: (next, old) => validateChange(next, old, { decides: true }),
      },
    },
    fieldSelectors: { 'spec.signerName': ({ spec }) => spec.signerName },
    unknownField: (label) => `field label not supported: ${label}`,
    columns: [
      nameColumn,
      ageColumn,
      { name: 'SignerName', value: ({ spec }) => spec.signerName || '<none>' },
      { name: 'Requestor', value: ({ spec }) => spec.username ?? '' },
      {
        name: 'RequestedDuration',
        value: ({ spec }) =>
          spec.expirationSeconds === undefined ? '<none>' : humanDuration(spec.expirationSeconds * 1000),
      },
      { name: 'Condition', value: conditionText },
    ],
  })
}

/** The user in the request is the requester, regardless of the body. */
function setRequester(spec: CertificateSigningRequest['spec'], { name, uid, groups, extra }: User): void {
  spec.username = name
  spec.uid = uid
  spec.groups = [...groups]
  delete spec.extra
  const entries = Object.entries(extra)
  if (entries.length > 0) spec.extra = Object.fromEntries(entries.map(([key, values]) => [key, [...values]]))
}

/** Unless their number changed, which validation rejects. */
function keepDecisions(next: Conditions, old: Conditions): void {
  for (const type of ['Approved', 'Denied']) {
    const indexes = next.flatMap((condition, at) => (condition.type === type ? [at] : []))
    const before = old.filter((condition) => condition.type === type)
    if (indexes.length !== before.length) continue
    for (const [nth, place] of indexes.entries()) next[place] = { ...(before[nth] as Conditions[number]) }
  }
}

/** An unchanged condition keeps its transition time. */
function setTimes(next: CertificateSigningRequest, old: CertificateSigningRequest, { clock }: RuleContext): void {
  const now = timeOf(clock.now())
  for (const condition of next.status.conditions ?? []) {
    condition.lastUpdateTime ??= now
    const same = old.status.conditions?.find(
      ({ type, status, lastTransitionTime }) =>
        type === condition.type && status === condition.status && lastTransitionTime !== null,
    )
    condition.lastTransitionTime ??= same?.lastTransitionTime ?? now
  }
}

function conditionText({ status }: CertificateSigningRequest): string {
  const has = (type: string): boolean => (status?.conditions ?? []).some((condition) => condition.type === type)
  const decision = has('Denied') ? 'Denied' : has('Approved') ? 'Approved' : 'Pending'
  const failed = has('Failed') ? ',Failed' : ''
  return `${decision}${failed}${(status?.certificate ?? '') === '' ? '' : ',Issued'}`
}
