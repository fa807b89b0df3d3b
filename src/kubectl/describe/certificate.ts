/** Describes certificate signing requests: requester, names and state. */
import type { CertificateSigningRequest } from '#apis/certificates/v1.ts'
import { parseRequest } from '#lib/x509/request.ts'
import { humanDuration } from '#meta/duration.ts'
import { labelsText } from '#meta/labels.ts'

import { type DescribedKinds, describes } from './describer.ts'
import type { Part } from './rows.ts'
import { dateText } from './times.ts'

const SUBJECT: readonly (readonly [label: string, oid: string])[] = [
  ['Organization', '2.5.4.10'],
  ['Organizational Unit', '2.5.4.11'],
  ['Country', '2.5.4.6'],
  ['Locality', '2.5.4.7'],
  ['Province', '2.5.4.8'],
  ['StreetAddress', '2.5.4.9'],
  ['PostalCode', '2.5.4.17'],
]
const SERIAL_NUMBER = '2.5.4.5'

export const CERTIFICATE_KINDS: DescribedKinds = {
  'CertificateSigningRequest.certificates.k8s.io': describes(
    'certificates.k8s.io/v1/certificatesigningrequests',
    requestRows,
  ),
}

function requestRows(csr: CertificateSigningRequest): Part[] {
  const { metadata, spec } = csr
  const { subject, names } = parsed(spec.request)
  const valuesOf = (oid: string): string[] =>
    subject.attributes.filter((one) => one.oid === oid).map(({ value }) => value)
  const { expirationSeconds: seconds } = spec
  const { dns, emails, uris, ips } = names
  return [
    ['Name', metadata.name],
    ['Labels', labelsText(metadata.labels)],
    ['Annotations', labelsText(metadata.annotations)],
    ['CreationTimestamp', dateText(metadata.creationTimestamp)],
    ['Requesting User', spec.username ?? ''],
    ['Signer', spec.signerName || undefined],
    ['Requested Duration', seconds === undefined ? undefined : humanDuration(seconds * 1000)],
    ['Status', statusText(csr)],
    'Subject:',
    `\tCommon Name:\t${subject.commonName}`,
    `\tSerial Number:\t${valuesOf(SERIAL_NUMBER).at(-1) ?? ''}`,
    ...SUBJECT.map(([label, oid]) => listLine(label, valuesOf(oid))),
    dns.length + emails.length + uris.length + ips.length > 0 ? 'Subject Alternative Names:' : undefined,
    listLine('DNS Names', dns),
    listLine('Email Addresses', emails),
    listLine('URIs', uris),
    listLine('IP Addresses', ips),
  ]
}

function parsed(base64: string): ReturnType<typeof parseRequest> {
  try {
    return parseRequest(Buffer.from(base64, 'base64').toString())
  } catch (error) {
    throw new Error(`Error parsing CSR: ${(error as Error).message}`, { cause: error })
  }
}

function listLine(label: string, values: readonly string[]): Part {
  return values.length === 0 ? undefined : `\t${label}:\t${values.join('\n\t\t')}`
}

function statusText({ status }: CertificateSigningRequest): string {
  const types = new Set((status.conditions ?? []).map(({ type }) => type))
  const decision = types.has('Denied') ? 'Denied' : types.has('Approved') ? 'Approved' : 'Pending'
  const failed = types.has('Failed') ? ',Failed' : ''
  return `${decision}${failed}${(status.certificate ?? '') === '' ? '' : ',Issued'}`
}
