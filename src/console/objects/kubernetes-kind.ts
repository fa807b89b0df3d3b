/** The kinds of Kubernetes whose objects the console reads closely. Custom resources can have kinds of the same names. */
import type { KubeObject } from '#meta/object.ts'

import { groupOf } from './ref.ts'

const RBAC = 'rbac.authorization.k8s.io'

const GROUPS: ReadonlyMap<string, string> = new Map([
  ['Pod', ''],
  ['Node', ''],
  ['Namespace', ''],
  ['Service', ''],
  ['ConfigMap', ''],
  ['Secret', ''],
  ['ServiceAccount', ''],
  ['PersistentVolume', ''],
  ['PersistentVolumeClaim', ''],
  ['ReplicationController', ''],
  ['Deployment', 'apps'],
  ['ReplicaSet', 'apps'],
  ['StatefulSet', 'apps'],
  ['DaemonSet', 'apps'],
  ['Job', 'batch'],
  ['CronJob', 'batch'],
  ['Ingress', 'networking.k8s.io'],
  ['PodDisruptionBudget', 'policy'],
  ['Role', RBAC],
  ['ClusterRole', RBAC],
  ['CustomResourceDefinition', 'apiextensions.k8s.io'],
])

/** The kind of an object of Kubernetes itself; empty for all other objects. */
export function kubernetesKind({ kind = '', apiVersion }: Pick<KubeObject, 'kind' | 'apiVersion'>): string {
  const group = GROUPS.get(kind)
  if (group === undefined) return ''
  return apiVersion === undefined || groupOf(apiVersion) === group ? kind : ''
}
