/**
 * Runs upstream's e2e tests of `podCertificate` projections, with upstream's signer: `node
 * test/upstream/pod-certificates.ts`. Runs as root against `hyperkube up` with containers and the required gates. Exits
 * with 1 if a test fails; leaves nothing on the machine.
 */
import { endWithSuite } from '../conformance/suite.ts'
import { runLabelled } from './labelled-tests.ts'

const GATES = ['PodCertificateRequest', 'ClusterTrustBundle', 'ClusterTrustBundleProjection']

endWithSuite()
process.exitCode = await runLabelled({
  label: 'FeatureGate:PodCertificateRequest',
  images: ['agnhost', 'pause'],
  procs: 2,
  flags: [
    `--feature-gates=${GATES.map((gate) => `${gate}=true`).join(',')}`,
    '--runtime-config=certificates.k8s.io/v1beta1=true',
  ],
  isChosen: () => true,
})
