import assert from 'node:assert/strict'
import { it } from 'node:test'

import type { CertificateSigningRequest } from '#apis/certificates/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { createServerMeters } from '#model/metrics/families.ts'

import { createIssueMeter } from './issue-metrics.ts'

const DAY_SECONDS = 86_400

it('the metric of issued certificates counts by whether they have the requested duration', () => {
  const meters = createServerMeters()
  const issued = createIssueMeter(meters)
  const tools = { clock: createVirtualClock(), random: createSeededRandom(1) }
  const { certificatePem } = createAuthority({ commonName: 'x', validityMs: DAY_SECONDS * 1000 }, tools)
  const certificate = Buffer.from(certificatePem).toString('base64')
  const asking = (expirationSeconds: number | undefined, signerName: string): CertificateSigningRequest =>
    ({ metadata: {}, spec: { signerName, expirationSeconds }, status: {} }) as unknown as CertificateSigningRequest
  const issue = (old: CertificateSigningRequest): void => issued({ ...old, status: { certificate } }, old)
  issue(asking(DAY_SECONDS, 'kubernetes.io/kube-apiserver-client'))
  issue(asking(7 * DAY_SECONDS, 'example.com/own'))
  issue(asking(undefined, 'example.com/own'))
  const done = { ...asking(DAY_SECONDS, 'example.com/own'), status: { certificate } }
  issued(done, done)
  issued(asking(DAY_SECONDS, 'example.com/own'), asking(DAY_SECONDS, 'example.com/own'))
  const { status: _none, ...fresh } = asking(DAY_SECONDS, 'example.com/own')
  issued(fresh as CertificateSigningRequest, undefined)
  const series = meters.registry.render().match(/^apiserver_\S+ \d+$/gm)
  assert.deepEqual(series, [
    'apiserver_certificates_registry_csr_honored_duration_total{signerName="kubernetes.io/kube-apiserver-client"} 1',
    'apiserver_certificates_registry_csr_requested_duration_total{signerName="kubernetes.io/kube-apiserver-client"} 1',
    'apiserver_certificates_registry_csr_requested_duration_total{signerName="other"} 1',
  ])
})
