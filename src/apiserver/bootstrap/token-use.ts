/** Records the last use of a legacy service account token: labels its Secret with the day. */
import { Secrets } from '#apis/core/v1.ts'
import { LAST_USED, type MarkUse } from '#auth/credentials/legacy-token.ts'
import { conflictError } from '#meta/status-errors.ts'

import type { Registry } from '../registry/registry.ts'

export function createUseMarker({ writer }: Registry, onError: (error: unknown) => void): MarkUse {
  return async ({ metadata: { namespace = '', name = '', uid } }, day) => {
    try {
      await writer.update(Secrets, { namespace, name }, (secret) => {
        // A Secret that was recreated under this name has another token.
        if (secret.metadata.uid !== uid)
          throw conflictError({ group: '', resource: 'secrets' }, name, 'it was replaced')
        secret.metadata.labels = { ...secret.metadata.labels, [LAST_USED]: day }
        return secret
      })
    } catch (error) {
      onError(error)
    }
  }
}
