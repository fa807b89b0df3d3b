/** Notes on the secret of an old token that it was used: a write of the server's own. */
import { Secrets } from '#apis/core/v1.ts'
import { conflictError } from '#meta/status-errors.ts'

import { LAST_USED, type MarkUse } from '../credentials/legacy-token.ts'
import type { Registry } from '../registry/registry.ts'

export function createUseMarker({ writer }: Registry, onError: (error: unknown) => void): MarkUse {
  return async ({ metadata: { namespace = '', name = '', uid } }, day) => {
    try {
      await writer.update(Secrets, { namespace, name }, (secret) => {
        // Another one of that name has a token of its own.
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
