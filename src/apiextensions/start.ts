/** Everything that makes definitions of custom resources work, while the server runs. */
import { type Following, joinFollowings } from '#apiserver/authorizers/follow.ts'

import { startApiServices } from './api-services.ts'
import { startCleanup } from './cleanup.ts'
import { type ServingOptions, startServing } from './serving.ts'
import { startStatusWriter } from './status-writer.ts'

/** Ready when what was defined before is served again. Serving comes first: what is established is served. */
export function startCustomResources(options: ServingOptions): Following {
  const { registry, onError } = options
  const parts = [
    startServing(options),
    startStatusWriter(registry, onError),
    startApiServices(registry, onError),
    startCleanup(registry, onError),
  ]
  return joinFollowings(parts.filter((part) => part !== undefined))
}
