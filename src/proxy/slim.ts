/** Trims objects to the fields that routes need, because there may be very many objects. Pure. */
import type { Service } from '#apis/core/v1.ts'
import type { EndpointSlice } from '#apis/discovery/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'

const SLICE_LABELS = ['kubernetes.io/service-name']
const SLICE_ANNOTATIONS = ['endpoints.kubernetes.io/last-change-trigger-time']

export function slimService(service: Service): Service {
  const { selector: _selector, ...spec } = service.spec ?? {}
  const { ingress } = service.status?.loadBalancer ?? {}
  const loadBalancer = ingress === undefined ? {} : { ingress }
  return { ...service, metadata: identity(service.metadata), spec, status: { loadBalancer } }
}

export function slimSlice(slice: EndpointSlice): EndpointSlice {
  const { labels, annotations } = slice.metadata
  return {
    ...slice,
    metadata: {
      ...identity(slice.metadata),
      labels: only(labels, SLICE_LABELS),
      annotations: only(annotations, SLICE_ANNOTATIONS),
    },
    endpoints: (slice.endpoints ?? []).map(({ addresses, conditions, nodeName, hints }) => ({
      addresses,
      conditions,
      ...(nodeName !== undefined && { nodeName }),
      ...(hints !== undefined && { hints }),
    })),
  }
}

function identity({ name, namespace, uid, resourceVersion }: ObjectMeta): ObjectMeta {
  return {
    ...(name !== undefined && { name }),
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  }
}

function only(from: Readonly<Record<string, string>> | undefined, keys: readonly string[]): Record<string, string> {
  return Object.fromEntries(keys.flatMap((key) => (from?.[key] === undefined ? [] : [[key, from[key]]])))
}
