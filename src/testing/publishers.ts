/**
 * Creates the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt` in every namespace of a test server without
 * controllers, so that pods can be created.
 */
import { ConfigMaps, Namespaces, ServiceAccounts } from '#apis/core/v1.ts'
import type { Entry } from '#apiserver/registry/entry.ts'
import { follow, type Following, joinFollowings } from '#apiserver/registry/follow.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'

const ROOT_CA = 'kube-root-ca.crt'
const DESCRIPTION =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.'

export interface PublisherOptions {
  /** The CA for clients inside of the cluster in PEM. */
  readonly rootCa: string
  readonly onError: (error: unknown) => void
}

/** Starts at once; `close` stops. A failure is retried at the next change of the namespace or object. */
export function startPublishers(registry: Registry, { rootCa, onError }: PublisherOptions): Following {
  const publish = (namespace: string): void => {
    void publishTo(registry, namespace, rootCa).catch((error: unknown) => {
      // The namespace was deleted meanwhile.
      if (!isNotFound(error)) onError(error)
    })
  }
  const followed = [Namespaces, ServiceAccounts, ConfigMaps].flatMap((kind) => {
    const store = registry.storeOf(kind)
    if (store === undefined) return []
    const isNamespace = kind.plural === Namespaces.plural
    return follow<Entry>(store.collection, {
      set(entry, previous) {
        if (isNamespace && previous === undefined && !isBeingDeleted(entry.object)) publish(entry.name)
      },
      remove(entry) {
        const ours = entry.name === (kind.plural === ConfigMaps.plural ? ROOT_CA : 'default')
        if (!isNamespace && ours) publish(entry.namespace)
      },
    })
  })
  return joinFollowings(followed)
}

async function publishTo(registry: Registry, namespace: string, rootCa: string): Promise<void> {
  const found = await registry.get(Namespaces, '', namespace)
  if (found === undefined || isBeingDeleted(found)) return
  await registry.writer.ensure(ServiceAccounts, { metadata: { name: 'default', namespace } })
  await registry.writer.ensure(ConfigMaps, {
    metadata: { name: ROOT_CA, namespace, annotations: { 'kubernetes.io/description': DESCRIPTION } },
    data: { 'ca.crt': rootCa },
  })
}
