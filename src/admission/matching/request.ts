/** Builds the AdmissionRequest without its objects, for webhook reviews and for the CEL variable `request`. */
import { type Namespace, Namespaces } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { BUILT_IN } from '#apiserver/registry/shapes.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import type { ObjectMeta } from '#meta/object.ts'
import { notFoundError } from '#meta/status-errors.ts'

import type { Form } from './forms.ts'
import { namespaceOf, requestedForm } from './matcher.ts'

/** The form for expressions. */
export function requestValue(attributes: Attributes, form: Form): object {
  const { dryRun } = attributes
  return { ...requestHead(form, attributes), dryRun, options: optionsOf(attributes) }
}

/** The first fields of a review, in upstream's order; empty ones are omitted. */
export function requestHead({ resource, kind }: Form, attributes: Attributes): object {
  const { subresource, name, operation, user } = attributes
  const requested = requestedForm(attributes)
  const namespace = namespaceOf(attributes)
  const { group, version } = kind
  return {
    kind: { group, version, kind: kind.kind },
    resource: { group: resource.group, version: resource.version, resource: resource.resource },
    ...(subresource !== '' && { subResource: subresource }),
    requestKind: requested.kind,
    requestResource: requested.resource,
    ...(subresource !== '' && { requestSubResource: subresource }),
    ...(name !== '' && { name }),
    ...(namespace !== '' && { namespace }),
    operation,
    userInfo: {
      ...(user.name !== '' && { username: user.name }),
      ...(user.uid !== '' && { uid: user.uid }),
      ...(user.groups.length > 0 && { groups: user.groups }),
      ...(Object.keys(user.extra).length > 0 && { extra: user.extra }),
    },
  }
}

const OPTIONS = { CREATE: 'CreateOptions', UPDATE: 'UpdateOptions', DELETE: 'DeleteOptions' } as const

/** As upstream, independent of the verb: a patch is an update. */
export function optionsOf({ operation, options, kind, oldObject }: Attributes): object | null {
  if (operation === 'CONNECT') return null
  const gvk = { group: 'meta.k8s.io', version: 'v1', kind: OPTIONS[operation] }
  const schema = BUILT_IN.schemaFor(gvk)
  // Upstream's rules for Namespaces set a precondition on the uid.
  const uid =
    operation === 'DELETE' && kind.group === '' && kind.plural === Namespaces.plural && oldObject?.metadata.uid
  const own = uid ? { ...options, preconditions: { uid, ...(options['preconditions'] as object) } } : { ...options }
  const known = schema === undefined ? own : (decodeValue(schema, own, 'Ignore', { offences: [] }) as object)
  return { kind: gvk.kind, apiVersion: 'meta.k8s.io/v1', ...withoutKind(known) }
}

function withoutKind(options: object): object {
  const { kind: _, apiVersion: __, ...rest } = options as Record<string, unknown>
  return rest
}

/** The metadata of a namespace that expressions may read. */
const SHOWN_METADATA = [
  'name',
  'generateName',
  'namespace',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'finalizers',
] as const satisfies readonly (keyof ObjectMeta)[]

/** The namespace of the object; undefined for cluster-scoped objects. Throws StatusError 404. */
export async function namespaceValue({ kind, namespace, objects }: Attributes): Promise<object | undefined> {
  const isNamespace = kind.group === Namespaces.group && kind.plural === Namespaces.plural
  if (namespace === '' || isNamespace) return undefined
  const found = await objects.get(Namespaces, '', namespace)
  if (found === undefined) throw notFoundError({ group: '', resource: Namespaces.plural }, namespace)
  return shown(found)
}

function shown({ metadata, spec, status }: Namespace): object {
  const entries = SHOWN_METADATA.filter((name) => metadata[name] !== undefined).map((name) => [name, metadata[name]])
  return { metadata: Object.fromEntries(entries) as object, spec: spec ?? {}, status: status ?? {} }
}
