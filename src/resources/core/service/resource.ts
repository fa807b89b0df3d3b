/** Service: one name and address for many pods. */
import { type Service, Services } from '#apis/core/v1.ts'
import { defineResource, type Resource, type WriteContext } from '#apiserver/registry/resource.ts'
import { semanticEqual } from '#meta/object.ts'
import { nameIsLabel } from '#meta/validation/names.ts'

import type { ServiceAllocator } from './allocation.ts'
import { serviceColumns } from './columns.ts'
import { applyDefaults } from './defaults.ts'
import { completeSpec, normalizeNew, normalizeUpdate } from './linked-fields.ts'
import { validateService, validateServiceName, validateServiceStatus, validateServiceUpdate } from './validation.ts'
import { serviceWarnings, statusWarnings } from './warnings.ts'

/** Removes the Endpoints of a Service that is gone. Must not throw when there are none. */
export type DeleteEndpoints = (namespace: string, name: string, context: WriteContext) => Promise<void>

/**
 * Services whose addresses and ports come from `allocator`. `deleteEndpoints` spares a new Service of the same name
 * the addresses of the old one while the endpoints controller lags.
 */
export function createServiceResource(
  allocator: ServiceAllocator,
  deleteEndpoints?: DeleteEndpoints,
): Resource<Service> {
  return defineResource<Service>({
    kind: Services,
    storagePrefix: 'services/specs',
    nameRule: nameIsLabel,
    applyDefaults,
    prepareCreate: ({ spec }) => normalizeNew(spec),
    prepareUpdate: (next, old) => normalizeUpdate(next, old, allocator.primaryFamily),
    async allocate(next, old, context) {
      // A status, or labels: nothing that would have to be reserved.
      if (old !== undefined && semanticEqual(next.spec, old.spec)) return async () => {}
      return allocator.allocate(next, old, context)
    },
    async released(service, context) {
      const { namespace = '', name = '' } = service.metadata
      await deleteEndpoints?.(namespace, name, context)
      await allocator.release(service, context)
    },
    validate: (object, context) => [...validateServiceName(object, context), ...validateService(object, context)],
    validateUpdate(next, old, context) {
      const before = { ...old, spec: completeSpec(old.spec, allocator.primaryFamily) }
      return validateServiceUpdate(next, before, context)
    },
    warnings: (next) => serviceWarnings(next),
    status: {
      keeps: ['spec'],
      validateUpdate: validateServiceStatus,
      warnings: (next) => statusWarnings(next),
    },
    fieldSelectors: {
      'spec.clusterIP': ({ spec }) => spec.clusterIP ?? '',
      'spec.type': ({ spec }) => spec.type ?? '',
    },
    unknownField: (label) => `field label not supported: ${label}`,
    columns: serviceColumns,
    deleteAnswersObject: true,
    putCreates: true,
  })
}
