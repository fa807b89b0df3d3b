/**
 * Lets definitions of custom resources go. Upstream's finalizer first deletes the custom resources; none are served yet,
 * so there are never any, and taking the finalizer off is all there is to do.
 */
import { CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import { hasFinalizer, isBeingDeleted, removeFinalizer } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'

import { follow, type Following } from '../authorizers/follow.ts'
import type { Entry } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'

const CLEANUP = 'customresourcecleanup.apiextensions.k8s.io'

/** Starts at once; undefined when definitions are not served. */
export function startDefinitionCleanup(registry: Registry, onError: (error: unknown) => void): Following | undefined {
  const store = registry.storeOf(CustomResourceDefinitions)
  if (store === undefined) return undefined
  const release = async (name: string): Promise<void> => {
    await registry.writer.update(CustomResourceDefinitions, { name }, (definition) => {
      removeFinalizer(definition, CLEANUP)
      return definition
    })
  }
  return follow<Entry>(store.collection, {
    set({ name, object }) {
      if (!isBeingDeleted(object) || !hasFinalizer(object, CLEANUP)) return
      void release(name).catch((error: unknown) => {
        if (!isNotFound(error)) onError(error)
      })
    },
    remove: () => undefined,
  })
}
