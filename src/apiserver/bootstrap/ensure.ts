/** Objects the server itself puts in place before it is ready. What is there already, people may have changed: it stays. */
import type { Kind } from '#apis/kinds.ts'
import { trackUpdate } from '#meta/apply/field-manager.ts'
import { apiVersionOf } from '#meta/kind.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import { isAlreadyExists } from '#meta/status.ts'

import type { Registry } from '../registry/registry.ts'
import type { User } from '../registry/resource.ts'
import type { WriteRequest } from '../registry/services.ts'
import type { Store } from '../registry/store.ts'

/** Who the server is to itself. */
export const SYSTEM_USER: User = {
  name: 'system:apiserver',
  uid: '',
  groups: ['system:masters', 'system:authenticated'],
  extra: {},
}

/** A write by the server itself. */
export function systemRequest(kind: Kind, namespace: string): WriteRequest {
  return {
    gvk: kind,
    namespace,
    subresource: '',
    user: SYSTEM_USER,
    dryRun: false,
    manager: 'kube-apiserver',
    options: {},
    warn: () => undefined,
    signal: new AbortController().signal,
  }
}

/** The new object with its fields marked as the server's. */
export function owned(store: Store, request: WriteRequest, object: KubeObject): KubeObject {
  const { kind, apiVersion } = object
  return trackUpdate(store.fieldRequest(request, { kind, apiVersion, metadata: {} } as KubeObject), object)
}

/** Creates the object unless one of its name is there. True when it was created. */
export async function ensure<T extends KubeObject>(
  registry: Registry,
  kind: Kind<T>,
  object: Omit<T, 'kind' | 'apiVersion'>,
): Promise<boolean> {
  const store = registry.storeOf(kind)
  if (store === undefined) return false
  const { name = '', namespace = '' } = object.metadata
  if ((await store.get(namespace, name)) !== undefined) return false
  const whole = { kind: kind.kind, apiVersion: apiVersionOf(kind), ...deepCopy(object) } as unknown as KubeObject
  store.resource.applyDefaults?.(whole, registry.services)
  try {
    const request = systemRequest(kind, namespace)
    await store.create(request, owned(store, request, whole))
    return true
  } catch (error) {
    // Another server of the same cluster was faster.
    if (isAlreadyExists(error)) return false
    throw error
  }
}
