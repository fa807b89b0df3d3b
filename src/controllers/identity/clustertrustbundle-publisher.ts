/**
 * Publishes the API server's CA bundle as a ClusterTrustBundle of the signer `kubernetes.io/kube-apiserver-serving`.
 * Its name contains a hash of the bundle; old bundles are deleted.
 */
import { createHash } from 'node:crypto'

import { ClusterTrustBundles } from '#apis/certificates/v1beta1.ts'
import { isAlreadyExists, isNotFound } from '#meta/status.ts'
import { EVENTS, related, rule } from '#reconcile/controller.ts'

import { type Controller, type ControllerContext, defineController } from '../controller.ts'
import { measured } from '../measured.ts'
import { rootBundleOf } from './root-bundle.ts'

const SIGNER = 'kubernetes.io/kube-apiserver-serving'
/** The only key of the queue. */
const KEY = 'bundle'

export const clusterTrustBundlePublisherController: Controller = defineController({
  name: 'kube-apiserver-serving-clustertrustbundle-publisher-controller',
  account: 'kube-apiserver-serving-clustertrustbundle-publisher',
  gates: ['ClusterTrustBundle'],
  workers: 1,
  watches: [related(ClusterTrustBundles, ({ spec }) => (spec.signerName === SIGNER ? [KEY] : []))],
  rules: [
    rule('certificates.k8s.io', 'signers', 'attest'),
    rule('certificates.k8s.io', 'clustertrustbundles', 'create delete list update watch'),
    EVENTS,
  ],

  async prepare(context) {
    if ((await rootBundleOf(context)) === '') return false
    return isServed(context)
  },

  reconcile: (_, context) => measured(context, 'clustertrustbundle_publisher', () => publish(context)),

  run({ enqueue }) {
    enqueue(KEY)
    return Promise.resolve()
  },
})

async function publish(context: ControllerContext): Promise<void> {
  const { cache, client, signal } = context
  const trustBundle = await rootBundleOf(context)
  const name = bundleName(trustBundle)
  const known = cache.get(ClusterTrustBundles, name)
  const spec = { signerName: SIGNER, trustBundle }
  if (known === undefined)
    await client.create(ClusterTrustBundles, { metadata: { name }, spec }, { signal }).catch(unlessThere)
  else if (known.spec.trustBundle !== trustBundle)
    await client.update(ClusterTrustBundles, { ...known, spec }, { signal })
  for (const {
    metadata,
    spec: { signerName },
  } of cache.list(ClusterTrustBundles)) {
    if (signerName !== SIGNER || metadata.name === name) continue
    await client.delete(ClusterTrustBundles, { name: metadata.name ?? '' }, { signal }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
  }
}

/** The signer with colons for slashes, and the first 12 bytes of the SHA-256. */
export function bundleName(bundle: string): string {
  const hash = createHash('sha256').update(bundle).digest('hex').slice(0, 24)
  return `${SIGNER.replaceAll('/', ':')}:${hash}`
}

function unlessThere(error: unknown): void {
  if (!isAlreadyExists(error)) throw error
}

async function isServed({ client, log, signal }: ControllerContext): Promise<boolean> {
  try {
    await client.list(ClusterTrustBundles, { limit: 1, signal })
    return true
  } catch (error) {
    if (!isNotFound(error)) throw error
    log.info(
      'no known scheme version was found for clustertrustbundles, cannot start kube-apiserver-serving-clustertrustbundle-publisher-controller',
    )
    return false
  }
}
