/** The Service resource: one name and address for many pods. */
import { Endpoints, type Service, Services } from '#apis/core/v1.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { semanticEqual } from '#meta/object.ts'
import { nameIsLabel } from '#meta/validation/names.ts'

import type { ServiceAllocator } from './allocation.ts'
import { serviceColumns } from './columns.ts'
import { applyDefaults } from './defaults.ts'
import { completeSpec, normalizeNew, normalizeUpdate } from './linked-fields.ts'
import { validateService, validateServiceName, validateServiceStatus, validateServiceUpdate } from './validation.ts'
import { serviceWarnings, statusWarnings } from './warnings.ts'

/** Services whose addresses and ports come from `allocator`. */
export function createServiceResource(allocator: ServiceAllocator): Resource<Service> {
  return defineResource<Service>({
    kind: Services,
    storagePrefix: 'services/specs',
    nameRule: nameIsLabel,
    applyDefaults,
    prepareCreate: ({ spec }) => normalizeNew(spec),
    prepareUpdate: (next, old) => normalizeUpdate(next, old, allocator.primaryFamily),
    async allocate(next, old, context) {
      // A change of status or labels needs no allocation.
      if (old !== undefined && semanticEqual(next.spec, old.spec)) return async () => {}
      return allocator.allocate(next, old, context)
    },
    async released(service, context) {
      const { namespace = '', name = '' } = service.metadata
      // Deletes the Endpoints as well: the controller may lag, and a new Service of the same name must not get the old
      // addresses.
      await context.writer.delete(Endpoints, { namespace, name })
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
