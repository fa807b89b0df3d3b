/** What the field manager needs to know of a write: the kind in all its versions, and which fields the request can set. */
import type { FieldFilter } from '#meta/apply/field-filter.ts'
import type { FieldRequest } from '#meta/apply/field-manager.ts'
import { fieldPaths } from '#meta/apply/field-set.ts'
import { parseApiVersion } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'

import type { Resource } from './resource.ts'
import type { Services, WriteRequest } from './services.ts'

export function fieldRequestOf(
  resource: Resource,
  { schemaFor, convert, clock }: Services,
  request: WriteRequest,
  live: KubeObject,
): FieldRequest {
  const { kind } = resource.kind
  const gvkOf = (apiVersion: string): { group: string; version: string; kind: string } => ({
    ...parseApiVersion(apiVersion),
    kind,
  })
  const filter = filterOf(resource, request.subresource)
  return {
    kind: {
      ...(filter === undefined ? {} : { filter: () => filter }),
      typeOf(apiVersion) {
        const schema = schemaFor(gvkOf(apiVersion))
        return schema === undefined ? undefined : { schema }
      },
      convert: (object, apiVersion) =>
        object.apiVersion === apiVersion
          ? object
          : { apiVersion, value: convert(object.value as KubeObject, gvkOf(apiVersion)) },
    },
    live,
    manager: request.manager,
    subresource: request.subresource,
    nowMs: clock.now(),
  }
}

const WITHOUT_STATUS: FieldFilter = { mode: 'exclude', fields: fieldPaths('status') }
const ONLY_STATUS: FieldFilter = { mode: 'exclude', fields: fieldPaths('spec', 'metadata') }

/** What a request through this part of the resource cannot set, it cannot own. */
function filterOf({ kind }: Resource, subresource: string): FieldFilter | undefined {
  if (!kind.subresources.some(({ name }) => name === 'status')) return undefined
  return subresource === 'status' ? ONLY_STATUS : WITHOUT_STATUS
}
