import { CertificateSigningRequests } from '#apis/certificates/v1.ts'

import type { Changes, KindCases, Since } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'

const encoded = (...lines: readonly string[]): string => Buffer.from(`${lines.join('\n')}\n`).toString('base64')

/** For CN=jane, O=dev; its key is gone. */
const REQUEST = encoded(
  '-----BEGIN CERTIFICATE REQUEST-----',
  'MIHWMH8CAQAwHTENMAsGA1UEAwwEamFuZTEMMAoGA1UECgwDZGV2MFkwEwYHKoZI',
  'zj0CAQYIKoZIzj0DAQcDQgAE1musAMIjkKfgQbVs5MVq07ir5M1Pjr9R9RhwE905',
  'UoQ6im+F2QT0e3343106ea688LRHtmVsvpdXWezynkSFGKAAMAoGCCqGSM49BAMC',
  'A0cAMEQCIBb89tQNpK+QBfn0ISNKnuPEcE11uWJ/TVoikOs344SUAiBWth7kT9Qp',
  'o114oe8y83TCLqPfVecFJeP2QKU4ULw2ug==',
  '-----END CERTIFICATE REQUEST-----',
)

/** A self-signed certificate; the server does not check that it matches the request. */
const CERTIFICATE = encoded(
  '-----BEGIN CERTIFICATE-----',
  'MIIBcDCCARWgAwIBAgIUNihrjtBtdo9EEewkxUd5N7no+TAwCgYIKoZIzj0EAwIw',
  'DTELMAkGA1UEAwwCY2EwHhcNMjYxMTE1MDUyMzI1WhcNMzYxMTEyMDUyMzI1WjAN',
  'MQswCQYDVQQDDAJjYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABNZrrADCI5Cn',
  '4EG1bOTFatO4q+TNT46/UfUYcBPdOVKEOopvhdkE9Ht9+N9dOnmuvPC0R7ZlbL6X',
  'V1ns8p5EhRijUzBRMB0GA1UdDgQWBBTYjqV9QE9jXp74LtU0ozpyeEHKfjAfBgNV',
  'HSMEGDAWgBTYjqV9QE9jXp74LtU0ozpyeEHKfjAPBgNVHRMBAf8EBTADAQH/MAoG',
  'CCqGSM49BAMCA0kAMEYCIQDV3V11JPR0p0sYxQL3BdYvhRAxWNXm5MPPFr4PF54r',
  '/gIhAOQkL+LH/ugC0uTnCuBwk0sjUt7n2UoRiZeKk//fI5ak',
  '-----END CERTIFICATE-----',
)

/** The same request with one bit of its signature turned. */
const FORGED = encoded(
  '-----BEGIN CERTIFICATE REQUEST-----',
  'MIHWMH8CAQAwHTENMAsGA1UEAwwEamFuZTEMMAoGA1UECgwDZGV2MFkwEwYHKoZI',
  'zj0CAQYIKoZIzj0DAQcDQgAE1musAMIjkKfgQbVs5MVq07ir5M1Pjr9R9RhwE905',
  'UoQ6im+F2QT0e3343106ea688LRHtmVsvpdXWezynkSFGKAAMAoGCCqGSM49BAMC',
  'A0cAMEQCIBb89tQNpK+QBfn0ISNKnuPEcE11uWJ/TVoikOs344SUAiBWth7kT9Qp',
  'o114oe8y83TCLqPfVecFJeP2QKU4UL02ug==',
  '-----END CERTIFICATE REQUEST-----',
)

const request = (text: string): Changes => ({ '/spec/request': text })
const decided = (...conditions: readonly object[]): Changes => ({ '/status': { conditions } })
const signed = (certificate: string): Changes => ({ '/status/certificate': certificate })

const approved = { type: 'Approved', status: 'True' }
const denied = { type: 'Denied', status: 'True' }
const failed = { type: 'Failed', status: 'True' }

const wasApproved: Since = { on: 'update approval', set: decided(approved) }
const wasSigned: Since = { on: 'update status', set: signed(CERTIFICATE) }

export const certificateSigningRequest: KindCases = {
  kind: CertificateSigningRequests,
  valid: {
    metadata: { name: 'refused' },
    spec: { request: REQUEST, signerName: 'example.com/signer', usages: ['client auth'], expirationSeconds: 600 },
  },
  refused: [
    { why: 'no request', set: { '/spec/request': undefined } },
    { why: 'a request that is not PEM', set: request(encoded('text')) },
    { why: 'a request that is a certificate', set: request(CERTIFICATE) },
    { why: 'a request that is not base64', set: request('***') },
    { why: 'a forged request', set: request(FORGED) },
    { why: 'no usages', set: { '/spec/usages': [] } },
    { why: 'an unknown usage', set: { '/spec/usages': ['hosting'] } },
    { why: 'a repeated usage', set: { '/spec/usages': ['client auth', 'client auth'] } },
    { why: 'no signer', set: { '/spec/signerName': '' } },
    { why: 'a signer without a domain', set: { '/spec/signerName': 'signer' } },
    { why: 'a signer without a path', set: { '/spec/signerName': 'example.com/' } },
    { why: 'a signer of two paths', set: { '/spec/signerName': 'example.com/a/b' } },
    { why: 'a signer with capitals', set: { '/spec/signerName': 'Example.com/a' } },
    { why: 'a signer without a dot', set: { '/spec/signerName': 'example/a' } },
    { why: 'a signer too long', set: { '/spec/signerName': `example.com/${'a'.repeat(600)}` } },
    { why: 'the legacy signer', set: { '/spec/signerName': 'kubernetes.io/legacy-unknown' } },
    { why: 'a certificate of a minute', set: { '/spec/expirationSeconds': 60 } },
    { why: 'a name with a slash', set: { '/metadata/name': 'a/b' } },
    { why: 'approved and denied', on: 'update approval', set: decided(approved, denied) },
    { why: 'repeated approval', on: 'update approval', set: decided(approved, approved) },
    { why: 'approved in part', on: 'update approval', set: decided({ type: 'Approved', status: 'False' }) },
    { why: 'a condition without a type', on: 'update approval', set: decided({ status: 'True' }) },
    { why: 'a condition without a status', on: 'update approval', set: decided({ type: 'Odd' }) },
    {
      why: 'a condition with an unknown status',
      on: 'update approval',
      set: decided({ type: 'Odd', status: 'Maybe' }),
    },
    { why: 'the approval is removed', on: 'update approval', since: [wasApproved], set: decided() },
    { why: 'approved, then denied', on: 'update approval', since: [wasApproved], set: decided(denied) },
    { why: 'approved by the way', on: 'update status', set: decided(approved) },
    { why: 'denied by the way', on: 'update status', since: [wasApproved], set: decided(approved, denied) },
    {
      why: 'failed no more',
      on: 'update status',
      since: [{ on: 'update status', set: decided(failed) }],
      set: decided(),
    },
    { why: 'a certificate that is not PEM', on: 'update status', set: signed(encoded('text')) },
    { why: 'a certificate that is a request', on: 'update status', set: signed(REQUEST) },
    {
      why: 'a certificate with headers',
      on: 'update status',
      set: signed(encoded('-----BEGIN CERTIFICATE-----', 'A: b', '', 'AAAA', '-----END CERTIFICATE-----')),
    },
    { why: 'another certificate', on: 'update status', since: [wasSigned], set: signed(`${CERTIFICATE}Cg==`) },
    {
      why: 'the certificate is removed',
      on: 'update status',
      since: [wasSigned],
      set: { '/status/certificate': undefined },
    },
    ...badMetadataUpdates,
  ],
}
