/** Requests for certificates: who asks, for what names, and what became of it. */
import type { CertificateSigningRequest } from '#apis/certificates/v1.ts'
import { parseRequest } from '#lib/x509/request.ts'
import { humanDuration } from '#meta/duration.ts'
import { labelsText } from '#meta/labels.ts'

import type { Surroundings } from './describer.ts'
import { Page } from './page.ts'
import { putEventsOf } from './sections.ts'
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

export async function describeCertificateRequest(
  csr: CertificateSigningRequest,
  around: Surroundings,
): Promise<string> {
  const page = new Page()
  const { metadata, spec } = csr
  const request = parsed(spec.request)
  page.rows(0, [
    ['Name', metadata.name],
    ['Labels', labelsText(metadata.labels)],
    ['Annotations', labelsText(metadata.annotations)],
    ['CreationTimestamp', dateText(metadata.creationTimestamp)],
    ['Requesting User', spec.username ?? ''],
    ['Signer', spec.signerName || undefined],
    [
      'Requested Duration',
      spec.expirationSeconds === undefined ? undefined : humanDuration(spec.expirationSeconds * 1000),
    ],
    ['Status', statusText(csr)],
  ])
  const { attributes, commonName } = request.subject
  const valuesOf = (oid: string): string[] => attributes.filter((one) => one.oid === oid).map(({ value }) => value)
  page.put(0, 'Subject:\n')
  page.put(0, `\tCommon Name:\t${commonName}\n`)
  page.put(0, `\tSerial Number:\t${valuesOf(SERIAL_NUMBER).at(-1) ?? ''}\n`)
  for (const [label, oid] of SUBJECT) putList(page, label, valuesOf(oid))
  const { dns, emails, uris, ips } = request.names
  if (dns.length + emails.length + uris.length + ips.length > 0) page.put(0, 'Subject Alternative Names:\n')
  putList(page, 'DNS Names', dns)
  putList(page, 'Email Addresses', emails)
  putList(page, 'URIs', uris)
  putList(page, 'IP Addresses', ips)
  await putEventsOf(page, csr, around)
  return page.text()
}

function parsed(base64: string): ReturnType<typeof parseRequest> {
  try {
    return parseRequest(Buffer.from(base64, 'base64').toString())
  } catch (error) {
    throw new Error(`Error parsing CSR: ${(error as Error).message}`, { cause: error })
  }
}

function putList(page: Page, label: string, values: readonly string[]): void {
  if (values.length > 0) page.put(0, `\t${label}:\t${values.join('\n\t\t')}\n`)
}

function statusText({ status }: CertificateSigningRequest): string {
  const types = new Set((status.conditions ?? []).map(({ type }) => type))
  const decision = types.has('Denied') ? 'Denied' : types.has('Approved') ? 'Approved' : 'Pending'
  const failed = types.has('Failed') ? ',Failed' : ''
  return `${decision}${failed}${(status.certificate ?? '') === '' ? '' : ',Issued'}`
}
