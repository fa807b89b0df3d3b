/**
 * Deletes old CertificateSigningRequests: approved, denied, failed or pending for too long, or with an expired
 * certificate.
 */
import { type CertificateSigningRequest, CertificateSigningRequests } from '#apis/certificates/v1.ts'
import { parseCertificate } from '#lib/x509/certificate.ts'
import { isNotFound } from '#meta/status.ts'
import { epochMsOf } from '#meta/time.ts'
import { rule } from '#reconcile/controller.ts'
import { runPeriodically } from '#reconcile/periodic.ts'

import { type Controller, type ControllerContext, defineController } from '../../controller.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const NAME = 'certificatesigningrequest-cleaner-controller'

export const certificateCleanerController: Controller = defineController({
  name: NAME,
  aliases: ['csrcleaner'],
  account: 'certificate-controller',
  watches: [],
  reads: [CertificateSigningRequests],
  rules: [rule('certificates.k8s.io', 'certificatesigningrequests', 'delete list watch')],

  reconcile: () => Promise.resolve(),

  run: (context) => runPeriodically(context, HOUR_MS, 'Unable to clean CSRs', () => clean(context)),
})

async function clean({ cache, client, clock, log, signal }: ControllerContext): Promise<void> {
  for (const request of cache.list(CertificateSigningRequests)) {
    if (!isOver(request, clock.now())) continue
    const { name = '' } = request.metadata
    await client.delete(CertificateSigningRequests, { name }, { signal }).catch((error: unknown) => {
      if (!signal.aborted && !isNotFound(error)) log.error(error, 'Error while attempting to clean CSR', { csr: name })
    })
  }
}

/** An hour after approval or denial, a day without an answer, and at once if the certificate has expired. */
export function isOver({ metadata, status }: CertificateSigningRequest, nowMs: number): boolean {
  const { conditions = [], certificate = '' } = status
  const isOlder = (time: string | null | undefined, ageMs: number): boolean =>
    time !== undefined && time !== null && nowMs - epochMsOf(time) > ageMs
  const isIssued = certificate !== ''
  if (conditions.length === 0) return isOlder(metadata.creationTimestamp, DAY_MS)
  return conditions.some(({ type, lastUpdateTime }) => {
    if (type === 'Approved' && isIssued && isExpired(certificate, nowMs)) return true
    if (type === 'Approved') return isOlder(lastUpdateTime, isIssued ? HOUR_MS : DAY_MS)
    return (type === 'Denied' || type === 'Failed') && isOlder(lastUpdateTime, HOUR_MS)
  })
}

function isExpired(certificate: string, nowMs: number): boolean {
  try {
    return parseCertificate(Buffer.from(certificate, 'base64').toString('latin1')).notAfterMs < nowMs
  } catch {
    return false
  }
}
