/**
 * The fields of an object that users decide: all but status and most of the metadata, without values that the server or
 * controllers assign. Pure.
 */
import { isDeepStrictEqual } from 'node:util'

import type { ServedKind } from '#client/discovery.ts'

import type { AnyObject } from '../session/rest.ts'
import { isSecret, LAST_APPLIED } from './differences.ts'
import { resourceOf } from './user-kinds.ts'

type Fields = Readonly<Record<string, unknown>>

/** Fields of `spec` that the server or a controller assigns. */
const ASSIGNED: Readonly<Record<string, readonly string[]>> = {
  services: ['clusterIP', 'clusterIPs', 'healthCheckNodePort'],
  persistentvolumeclaims: ['volumeName'],
  persistentvolumes: ['claimRef'],
  'jobs.batch': ['selector'],
}

/** Annotations that controllers write. */
const OF_CONTROLLERS =
  /^(?:deployment\.kubernetes\.io|pv\.kubernetes\.io|autoscaling\.alpha\.kubernetes\.io)\/|^volume\.(?:beta\.)?kubernetes\.io\/(?:selected-node|storage-provisioner)$|^deprecated\.daemonset\.template\.generation$/

/** Labels that the Job controller derives from the uid of a Job. */
const JOB_LABELS = ['controller-uid', 'batch.kubernetes.io/controller-uid', 'job-name', 'batch.kubernetes.io/job-name']

/** A path of field names: `metadata.labels.app`. Lists count as a whole. */
export type FieldPath = readonly string[]

/** The paths of fields that users decide and that differ. */
export function changedFields(kind: ServedKind, before: AnyObject, now: AnyObject): FieldPath[] {
  const assigned = assignedFields(kind, now)
  return differingPaths(userFields(kind, before, assigned), userFields(kind, now, assigned), [])
}

function differingPaths(one: unknown, other: unknown, path: FieldPath): FieldPath[] {
  if (isDeepStrictEqual(one, other)) return []
  if (!isFields(one) || !isFields(other)) return [path]
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return [...names].flatMap((name) => differingPaths(one[name], other[name], [...path, name]))
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function userFields(kind: ServedKind, object: AnyObject, assigned: readonly string[]): Fields {
  const { labels = {}, annotations = {} } = object.metadata
  const metadata = { labels, annotations: ofUsers(kind, annotations) }
  const { spec, ...top } = topFields(kind, object)
  return { ...top, ...(isFields(spec) && { spec: without(spec, assigned) }), metadata }
}

/** Values of Secrets are not in the past. */
function topFields(kind: ServedKind, object: AnyObject): Fields {
  const { apiVersion: _, kind: __, metadata: ___, status: ____, ...top } = object
  if (!isSecret(kind)) return top
  const { data: _____, ...others } = top
  return others
}

function ofUsers(kind: ServedKind, annotations: Readonly<Record<string, string>>): Record<string, string> {
  const isOfUsers = (name: string): boolean => !OF_CONTROLLERS.test(name) && !(isSecret(kind) && name === LAST_APPLIED)
  return Object.fromEntries(Object.entries(annotations).filter(([name]) => isOfUsers(name)))
}

/** The number of replicas counts as assigned if an autoscaler has set it. */
function assignedFields(kind: ServedKind, { metadata: { managedFields = [] } }: AnyObject): readonly string[] {
  const isAutoscaled = managedFields.some(
    ({ manager, subresource }) => manager === 'kube-controller-manager' && subresource === 'scale',
  )
  return [...(ASSIGNED[resourceOf(kind)] ?? []), ...(isAutoscaled ? ['replicas'] : [])]
}

/** The present object with the users' fields of `before`. A write of it fails if the object changes in the meantime. */
export function restoredObject(kind: ServedKind, before: AnyObject, now: AnyObject): AnyObject {
  const { apiVersion, kind: kindName, metadata, status } = now
  const { spec, ...top } = topFields(kind, before)
  const assigned = assignedFields(kind, now)
  const { labels, annotations } = before.metadata
  const kept = Object.entries(metadata.annotations ?? {}).filter(([name]) => !(name in ofUsers(kind, { [name]: '' })))
  const restored = { ...Object.fromEntries(kept), ...ofUsers(kind, annotations ?? {}) }
  return {
    apiVersion,
    kind: kindName,
    ...top,
    ...(isFields(spec) && { spec: { ...without(spec, assigned), ...assignedIn(now, assigned) } }),
    ...(isSecret(kind) && now['data'] !== undefined && { data: now['data'] }),
    metadata: { ...withoutDecided(metadata), ...(labels && { labels }), ...filled({ annotations: restored }) },
    ...(status !== undefined && { status }),
  } as AnyObject
}

function assignedIn({ spec }: AnyObject, names: readonly string[]): Fields {
  if (!isFields(spec)) return {}
  return Object.fromEntries(names.filter((name) => spec[name] !== undefined).map((name) => [name, spec[name]]))
}

function withoutDecided(metadata: AnyObject['metadata']): AnyObject['metadata'] {
  const { labels: _, annotations: __, ...rest } = metadata
  return rest
}

function filled(parts: Readonly<Record<string, Fields>>): Fields {
  return Object.fromEntries(Object.entries(parts).filter(([, part]) => Object.keys(part).length > 0))
}

/** The object to create again, without values that belonged to the deleted one. */
export function recreatedObject(kind: ServedKind, before: AnyObject): AnyObject {
  const { namespace, name, labels = {}, annotations = {} } = before.metadata
  const { spec, ...top } = topFields(kind, before)
  // The address of a Service is free again, and "None" is a decision of the user.
  const kept =
    isFields(spec) && resourceOf(kind) !== 'services' ? without(spec, ASSIGNED[resourceOf(kind)] ?? []) : spec
  const isJob = resourceOf(kind) === 'jobs.batch'
  return {
    apiVersion: before.apiVersion,
    kind: before.kind,
    ...top,
    ...(kept !== undefined && { spec: isJob ? withoutJobLabels(kept as Fields) : kept }),
    metadata: {
      ...(namespace !== undefined && { namespace }),
      name,
      ...filled({ labels: isJob ? without(labels, JOB_LABELS) : labels, annotations: ofUsers(kind, annotations) }),
    },
  } as AnyObject
}

function withoutJobLabels(spec: Fields): Fields {
  const template = (spec['template'] ?? {}) as { readonly metadata?: { readonly labels?: Fields } }
  const { metadata = {} } = template
  const labels = without(metadata.labels ?? {}, JOB_LABELS)
  return { ...spec, template: { ...template, metadata: { ...metadata, labels } } }
}

function without(fields: Fields, names: readonly string[]): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))
}
