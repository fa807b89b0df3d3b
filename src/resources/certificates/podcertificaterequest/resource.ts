/** The PodCertificateRequest resource: a kubelet requests a certificate for one of its pods. */
import {
  type PodCertificateRequest,
  PodCertificateRequests,
  type PodCertificateRequestSpec,
} from '#apis/certificates/v1beta1.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Finish, type Resource, type WriteContext } from '#apiserver/registry/resource.ts'
import type { Authorizer } from '#auth/authorizer.ts'
import { mayUseSigner } from '#auth/credentials/signer-access.ts'
import { byteLength, compareText, goQuote } from '#lib/go/text.ts'
import { labelsText } from '#meta/labels.ts'
import { semanticEqual } from '#meta/object.ts'
import { invalidError } from '#meta/status-errors.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain } from '#meta/validation/names.ts'
import { immutable, validateDomainPrefixedKey } from '#meta/validation/rules.ts'
import { isKubernetesSigner, validateSignerName } from '#model/pod-spec/signer-names.ts'

import { validateKey } from './keys.ts'
import { validateStatusUpdate } from './status.ts'

const DAY_SECONDS = 86_400
const MIN_EXPIRATION_SECONDS = 3600
const MAX_EXPIRATION_SECONDS = 91 * DAY_SECONDS
const MAX_UID_BYTES = 128
const MAX_ANNOTATIONS_BYTES = 256 * 1024

/** Without an authorizer, every user who may write the status may sign. */
export function definePodCertificateRequest(ask?: Authorizer['authorize']): Resource<PodCertificateRequest> {
  return defineResource<PodCertificateRequest>({
    kind: PodCertificateRequests,
    applyDefaults({ spec }) {
      spec.maxExpirationSeconds ??= DAY_SECONDS
    },
    validate: ({ spec }) => validateSpec(spec),
    validateUpdate: (next, old) => immutable(fieldPath('spec'), next.spec, old.spec),
    resets: [],
    status: { resets: ['spec'], validateUpdate: validateStatusUpdate },
    ...(ask !== undefined && { allocate: (next, old, context) => checkSigner(ask, [next, old], context) }),
    fieldSelectors: {
      'spec.signerName': ({ spec }) => spec.signerName,
      'spec.podName': ({ spec }) => spec.podName,
      'spec.nodeName': ({ spec }) => spec.nodeName,
    },
    indexedFields: ['spec.nodeName'],
    unknownField: (label) => `field label not supported: ${label}`,
    columns: [
      nameColumn,
      { name: 'PodName', value: ({ spec }) => spec.podName },
      { name: 'ServiceAccountName', value: ({ spec }) => spec.serviceAccountName },
      { name: 'NodeName', value: ({ spec }) => spec.nodeName },
      { name: 'SignerName', value: ({ spec }) => spec.signerName },
      { name: 'State', value: stateText },
      { name: 'UnverifiedUserAnnotations', value: ({ spec }) => labelsText(spec.unverifiedUserAnnotations ?? {}) },
    ],
    putNeedsVersion: true,
  })
}

/** For tests, and for servers that allow everything. */
export const podCertificateRequest: Resource<PodCertificateRequest> = definePodCertificateRequest()

const states = ['Issued', 'Denied', 'Failed']

function stateText({ status }: PodCertificateRequest): string {
  return status?.conditions?.filter(({ type }) => states.includes(type)).at(-1)?.type ?? 'Pending'
}

/** Reserves nothing: this is the only hook that may call the authorizer. Validation rejects an invalid status. */
async function checkSigner(
  ask: Authorizer['authorize'],
  [next, old]: readonly [PodCertificateRequest, PodCertificateRequest | undefined],
  context: WriteContext,
): Promise<Finish> {
  const isSettled = old === undefined || semanticEqual(next.status, old.status)
  if (isSettled || validateStatusUpdate(next, old, context).length > 0) return done
  const { signerName } = old.spec
  const { user } = context
  if (await mayUseSigner(ask, user, { verb: 'sign', signerName })) return done
  const detail = `User ${goQuote(user.name)} is not permitted to "sign" for signer ${goQuote(signerName)}`
  const { group, kind } = PodCertificateRequests
  throw invalidError({ group, kind }, next.metadata.name ?? '', [fieldPath('spec.signerName').forbidden(detail)])
}

const done: Finish = () => Promise.resolve()

function validateSpec(spec: PodCertificateRequestSpec): FieldError[] {
  const { signerName, maxExpirationSeconds: seconds } = spec
  const errors = [
    ...validateSignerName(fieldPath('spec.signerName'), signerName),
    ...validateAnnotations(spec.unverifiedUserAnnotations ?? {}),
    ...(['pod', 'serviceAccount', 'node'] as const).flatMap((who) => validateParty(spec, who)),
  ]
  const field = fieldPath('spec.maxExpirationSeconds')
  if (seconds === undefined) return [...errors, field.required('must be set')]
  const most = isKubernetesSigner(signerName) ? DAY_SECONDS : MAX_EXPIRATION_SECONDS
  if (seconds < MIN_EXPIRATION_SECONDS || seconds > most) {
    errors.push(field.invalid(seconds, `must be in the range [${MIN_EXPIRATION_SECONDS}, ${most}]`))
  }
  return [...errors, ...validateKey(spec)]
}

/** The name and uid of the subject, so that a later object with the same name does not get the certificate. */
function validateParty(spec: PodCertificateRequestSpec, who: 'pod' | 'serviceAccount' | 'node'): FieldError[] {
  const [name, uid] = [spec[`${who}Name`], spec[`${who}UID`]]
  return collectErrors(
    fieldPath(`spec.${who}Name`).check(name, dns1123Subdomain),
    uid === '' && fieldPath(`spec.${who}UID`).invalid('', 'must not be empty'),
    byteLength(uid) > MAX_UID_BYTES && fieldPath(`spec.${who}UID`).tooLong(MAX_UID_BYTES),
  )
}

/** Sorted by key; Go's order is random. */
function validateAnnotations(annotations: Readonly<Record<string, string>>): FieldError[] {
  const field = fieldPath('spec.unverifiedUserAnnotations')
  const entries = Object.entries(annotations).sort(([a], [b]) => compareText(a, b))
  const sizeBytes = entries.reduce((sum, [key, value]) => sum + byteLength(key) + byteLength(value), 0)
  return collectErrors(
    entries.flatMap(([key]) => validateDomainPrefixedKey(field, key.toLowerCase())),
    sizeBytes > MAX_ANNOTATIONS_BYTES && field.tooLong(MAX_ANNOTATIONS_BYTES),
  )
}
