/**
 * Handles kinds whose objects are computed on request, such as ComponentStatus. They support lists, selectors and all
 * response forms, but no watch and no resource versions.
 */
import type { Kind } from '#apis/kinds.ts'
import type { Call } from '#component/requests/call.ts'
import { latin1 } from '#lib/latin1.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { apiVersionOf } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { getOptionsQuery } from '#meta/options.ts'
import { decodeQuery } from '#meta/query.ts'
import type { StructSchema } from '#meta/schema.ts'
import { notFoundError } from '#meta/status-errors.ts'

import type { Entry } from '../registry/entry.ts'
import { Representation } from '../registry/representation.ts'
import { type Column, defineResource, type Resource } from '../registry/resource.ts'
import type { Services } from '../registry/services.ts'
import type { VirtualResource } from '../registry/virtual.ts'
import { answerWithList, answerWithObject } from './answers.ts'
import { listOptionsOf } from './list.ts'
import { selectionOf } from './selection.ts'
import { formOf } from './view.ts'

export interface ObservedResource<T extends KubeObject> extends Pick<VirtualResource, 'deprecation'> {
  readonly kind: Kind<T>
  readonly columns: readonly Column<T>[]
  /** The name of the resource in 404 errors. */
  readonly missing: string
  /** The schema of a kind that no table contains. */
  readonly schema?: StructSchema
  /** All objects, or only the requested one, in display order. */
  observe(where: Observing, signal: AbortSignal): Promise<readonly T[]>
}

/** The request. */
export interface Observing {
  /** Empty: all namespaces, or a cluster-scoped kind. */
  readonly namespace: string
  /** Absent: all. */
  readonly name?: string
}

export function defineObserved<T extends KubeObject>(observed: ObservedResource<T>): VirtualResource {
  const { kind, columns, deprecation, schema } = observed
  const shapes = schema && { shapes: { schemas: { [apiVersionOf(kind)]: schema } } }
  const resource = defineResource<T>({ kind, columns, ...shapes }) as unknown as Resource
  const look = async ({ info: { namespace }, signal }: Call, only?: { readonly name: string }): Promise<Entry[]> =>
    (await observed.observe({ namespace, ...only }, signal)).map((object) => entryOf(kind, object))
  return {
    kind,
    ...(deprecation !== undefined && { deprecation }),
    handlers: {
      async get(call, services) {
        const form = formOf(call, 'object')
        decodeQuery(getOptionsQuery, call.query)
        const { name } = call.info
        const [entry] = await look(call, { name })
        if (entry === undefined) throw notFoundError({ group: kind.group, resource: observed.missing }, name)
        const view = viewOf(resource, services)
        return answerWithObject(call, view, entry, { form, status: 200 })
      },
      async list(call, services) {
        const form = formOf(call, 'list')
        const view = viewOf(resource, services)
        const selection = selectionOf(view, call.info.namespace, listOptionsOf(call, view))
        const entries = (await look(call)).filter((entry) => selection.matches(entry))
        return answerWithList(call, view, { entries, metadata: {}, form })
      },
    },
  }
}

interface ObservedView {
  readonly resource: Resource
  readonly representation: Representation
  readonly services: Services
}

function viewOf(resource: Resource, services: Services): ObservedView {
  const { kind } = resource
  const representation = new Representation({ kind, stored: kind, shapes: resource.shapes, memos: services.memos })
  return { resource, services, representation }
}

/** An entry as for a stored object, without a version. */
function entryOf(kind: Kind, object: KubeObject): Entry {
  const whole = encodeJson({ kind: kind.kind, apiVersion: apiVersionOf(kind), ...object })
  const body = latin1(whole.slice(whole.indexOf('"metadata"')))
  return {
    key: '',
    modRevision: 0,
    namespace: object.metadata.namespace ?? '',
    name: object.metadata.name ?? '',
    labels: object.metadata.labels ?? {},
    fields: {},
    body,
    bytes: body.length,
    object,
    memo: new Map(),
  }
}
