/**
 * Scale: the common view of all workloads with replicas. It is never stored: a read converts the workload, and a write
 * changes the workload.
 */
import type { Kind } from '#apis/kinds.ts'
import { type ReplicasPaths, scaleEntries, workloadEntries } from '#meta/apply/scale-fields.ts'
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'
import { deepCopy, type KubeObject, type ObjectMeta } from '#meta/object.ts'

import type { Admission, Attributes } from './admission.ts'
import type { ScaleRules } from './resource.ts'

/** The body of `scale` for every workload. */
export const SCALE: GroupVersionKind & { readonly namespaced: boolean } = {
  group: 'autoscaling',
  version: 'v1',
  kind: 'Scale',
  namespaced: true,
}

export interface Scale extends KubeObject {
  spec?: { replicas?: number }
  status?: { replicas: number; selector?: string }
}

/** The Scale of the workload, without managed fields, which only writes need. */
export function scaleOf(rules: ScaleRules<KubeObject>, workload: KubeObject): Scale {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = workload.metadata
  const metadata: ObjectMeta = {
    ...(name !== undefined && { name }),
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
    ...(creationTimestamp !== undefined && { creationTimestamp }),
  }
  const replicas = rules.replicas(workload)
  const selector = rules.selector(workload)
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata,
    spec: replicas === 0 ? {} : { replicas },
    status: { replicas: rules.statusReplicas(workload), ...(selector === '' ? {} : { selector }) },
  }
}

/** The same for a write: with the owners of its replicas. Throws if the workload's managed fields are unreadable. */
export function scaleForWrite(rules: ScaleRules<KubeObject>, workload: KubeObject, kind: Kind): Scale {
  const scale = scaleOf(rules, workload)
  const managedFields = scaleEntries(workload.metadata.managedFields, replicasPaths(rules, kind))
  if (managedFields.length > 0) scale.metadata.managedFields = managedFields
  return scale
}

/** A copy of the workload after a write to its Scale. `kind` is the workload's, in the version of the request. */
export function withScale(rules: ScaleRules<KubeObject>, workload: KubeObject, scale: Scale, kind: Kind): KubeObject {
  const next = deepCopy(workload)
  rules.setReplicas(next, scale.spec?.replicas ?? 0)
  const managedFields = workloadEntries({
    workload: workload.metadata.managedFields,
    scale: scale.metadata.managedFields,
    apiVersion: apiVersionOf(kind),
    paths: replicasPaths(rules, kind),
  })
  if (managedFields.length > 0) next.metadata.managedFields = managedFields
  else delete next.metadata.managedFields
  return next
}

/** All versions in which upstream ever served the built-in workloads of a group. */
const VERSIONS: Readonly<Record<string, readonly string[]>> = {
  '': ['v1'],
  apps: ['apps/v1beta1', 'apps/v1beta2', 'apps/v1'],
}

function replicasPaths(rules: ScaleRules<KubeObject>, { group }: Kind): ReplicasPaths {
  if (rules.replicasPaths !== undefined) return rules.replicasPaths
  return new Map((VERSIONS[group] ?? []).map((version) => [version, 'spec.replicas']))
}

/** Shows plugins the Scale instead of the workload; they may change its replicas. */
export function admitScales(rules: ScaleRules<KubeObject>, admission: Admission): Admission {
  const shown = (attributes: Attributes): Attributes => {
    const { object, oldObject } = attributes
    return Object.assign(Object.create(attributes), {
      objectKind: SCALE,
      object: object && scaleOf(rules, object),
      oldObject: oldObject && scaleOf(rules, oldObject),
    }) as Attributes
  }
  return {
    async mutate(attributes) {
      const view = shown(attributes)
      await admission.mutate(view)
      const { object } = attributes
      if (object !== undefined) rules.setReplicas(object, (view.object as Scale).spec?.replicas ?? 0)
    },
    validate: (attributes) => admission.validate(shown(attributes)),
  }
}
