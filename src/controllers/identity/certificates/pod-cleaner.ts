/** Deletes PodCertificateRequests 15 minutes after their creation. */
import { PodCertificateRequests } from '#apis/certificates/v1beta1.ts'
import { objectKey } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { epochMsOf } from '#meta/time.ts'
import { rule } from '#reconcile/controller.ts'
import { runPeriodically } from '#reconcile/periodic.ts'

import { type Controller, type ControllerContext, defineController } from '../../controller.ts'

const MINUTE_MS = 60_000
const PERIOD_MS = 5 * MINUTE_MS
/** Longer than a kubelet waits for an answer. */
const LIFE_MS = 15 * MINUTE_MS

export const podCertificateCleanerController: Controller = defineController({
  name: 'podcertificaterequest-cleaner-controller',
  account: 'podcertificaterequestcleaner',
  gates: ['PodCertificateRequest'],
  watches: [],
  reads: [PodCertificateRequests],
  rules: [rule('certificates.k8s.io', 'podcertificaterequests', 'delete get list watch')],

  reconcile: () => Promise.resolve(),

  run: (context) => runPeriodically(context, PERIOD_MS, 'Unable to clean PodCertificateRequests', () => clean(context)),
})

async function clean({ cache, client, clock, log, signal }: ControllerContext): Promise<void> {
  for (const request of cache.list(PodCertificateRequests)) {
    const { namespace, name = '', uid = '', creationTimestamp = '' } = request.metadata
    if (clock.now() < epochMsOf(creationTimestamp) + LIFE_MS) continue
    const where = { namespace, name }
    await client.delete(PodCertificateRequests, where, { preconditions: { uid }, signal }).catch((error: unknown) => {
      if (signal.aborted || isNotFound(error)) return
      log.error(error, 'Error while attempting to clean PodCertificateRequest', { pcr: objectKey(request) })
    })
  }
}
