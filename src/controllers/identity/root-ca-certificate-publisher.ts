/**
 * Root CA publisher: keeps the ConfigMap `kube-root-ca.crt` in every namespace, with the CA certificates that
 * `root-bundle.ts` reads. Without a root CA file, `ca.crt` in the ConfigMap is empty, as upstream.
 */
import { type ConfigMap, ConfigMaps, Namespaces } from '#apis/core/v1.ts'
import { keyOf, semanticEqual } from '#meta/object.ts'
import { isAlreadyExists, isNamespaceTerminating, isNotFound } from '#meta/status.ts'
import { itself, related, rule, EVENTS } from '#reconcile/controller.ts'

import { type Controller, type ControllerContext, defineController } from '../controller.ts'
import { measured } from '../measured.ts'
import { rootBundleOf } from './root-bundle.ts'

const NAME = 'kube-root-ca.crt'
const ANNOTATION = 'kubernetes.io/description'
const DESCRIPTION =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.'

export const rootCaCertificatePublisherController: Controller = defineController({
  name: 'root-ca-certificate-publisher-controller',
  aliases: ['root-ca-cert-publisher'],
  account: 'root-ca-cert-publisher',
  workers: 1,
  watches: [
    itself(Namespaces),
    related(ConfigMaps, ({ metadata }) => (metadata.name === NAME ? [metadata.namespace ?? ''] : [])),
  ],
  rules: [rule('', 'configmaps', 'create update'), EVENTS],

  reconcile: (namespace, context) =>
    measured(context, 'root_ca_cert_publisher', async () => {
      const bundle = await rootBundleOf(context)
      if (context.cache.get(Namespaces, namespace)?.status.phase !== 'Active') return
      try {
        await publish(namespace, { 'ca.crt': bundle }, context)
      } catch (error) {
        if (!isAlreadyExists(error) && !isNotFound(error) && !isNamespaceTerminating(error)) throw error
      }
    }),
})

async function publish(
  namespace: string,
  data: NonNullable<ConfigMap['data']>,
  { cache, client, signal }: ControllerContext,
): Promise<void> {
  const known = cache.get(ConfigMaps, keyOf(namespace, NAME))
  if (known === undefined) {
    const metadata = { namespace, name: NAME, annotations: { [ANNOTATION]: DESCRIPTION } }
    await client.create(ConfigMaps, { metadata, data }, { signal })
    return
  }
  const { annotations = {} } = known.metadata
  if (semanticEqual(known.data, data) && (annotations[ANNOTATION] ?? '') !== '') return
  const metadata = { ...known.metadata, annotations: { ...annotations, [ANNOTATION]: DESCRIPTION } }
  await client.update(ConfigMaps, { ...known, metadata, data }, { signal })
}
