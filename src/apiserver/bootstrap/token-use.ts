/** Notes on the secret of an old token that it was used: a write of the server's own. */
import { Secrets } from '#apis/core/v1.ts'
import { trackUpdate } from '#meta/apply/field-manager.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import { conflictError } from '#meta/status-errors.ts'

import { LAST_USED, type MarkUse } from '../credentials/legacy-token.ts'
import type { Registry } from '../registry/registry.ts'
import { systemRequest } from './ensure.ts'

export function createUseMarker(registry: Registry, onError: (error: unknown) => void): MarkUse {
  return async ({ metadata: { namespace = '', name = '', uid } }, day) => {
    const request = systemRequest(Secrets, namespace)
    const store = registry.storeOf(Secrets)
    const change = (live: KubeObject): KubeObject => {
      // Another one of that name has a token of its own.
      if (live.metadata.uid !== uid) throw conflictError({ group: '', resource: 'secrets' }, name, 'it was replaced')
      const next = deepCopy(live)
      next.metadata.labels = { ...next.metadata.labels, [LAST_USED]: day }
      return store === undefined ? next : trackUpdate(store.fieldRequest(request, live), next)
    }
    try {
      await store?.update(request, name, change)
    } catch (error) {
      onError(error)
    }
  }
}
