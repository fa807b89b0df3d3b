/** Starts the components for custom resources: serving, status, cleanup and APIServices. */
import { type Following, joinFollowings } from '#apiserver/registry/follow.ts'

import { startApiServices } from './api-services.ts'
import { startCleanup } from './cleanup.ts'
import { type ServingOptions, startServing } from './serving.ts'
import { startStatusWriter } from './status-writer.ts'

/** Resolves when existing definitions are served. Serving comes first: established definitions must be served. */
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
