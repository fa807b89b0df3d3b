/** The summary of an object: a table from kinds to the functions that make their sections. */
import type { DaemonSet, Deployment, ReplicaSet, StatefulSet } from '#apis/apps/v1.ts'
import type { CronJob, Job } from '#apis/batch/v1.ts'
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod, Service } from '#apis/core/v1.ts'
import type { Ingress } from '#apis/networking/v1.ts'
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from '#apis/rbac/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { bindingSections, roleSections } from './access.ts'
import { ingressSections, serviceSections } from './network.ts'
import { namespaceSections, nodeSections, quotaTable } from './node.ts'
import { podSections } from './pod.ts'
import type { Section } from './section.ts'
import { claimSections, volumeSections } from './storage.ts'
import {
  cronJobSections,
  daemonSetSections,
  deploymentSections,
  jobSections,
  replicaSetSections,
  statefulSetSections,
} from './workload.ts'

const BY_KIND: Readonly<Record<string, (object: KubeObject) => readonly Section[]>> = {
  'v1 Pod': (object) => podSections(object as Pod),
  'v1 Node': (object) => nodeSections(object as Node),
  'v1 Namespace': (object) => namespaceSections((object as { spec?: unknown }).spec),
  'v1 Service': (object) => serviceSections(object as Service),
  'v1 PersistentVolumeClaim': (object) => claimSections(object as PersistentVolumeClaim),
  'v1 PersistentVolume': (object) => volumeSections(object as PersistentVolume),
  'v1 ResourceQuota': (object) => quotaTable((object as { status?: unknown }).status),
  'v1 ConfigMap': () => [],
  'v1 Secret': () => [],
  'apps/v1 Deployment': (object) => deploymentSections(object as Deployment),
  'apps/v1 StatefulSet': (object) => statefulSetSections(object as StatefulSet),
  'apps/v1 DaemonSet': (object) => daemonSetSections(object as DaemonSet),
  'apps/v1 ReplicaSet': (object) => replicaSetSections(object as ReplicaSet),
  'batch/v1 Job': (object) => jobSections(object as Job),
  'batch/v1 CronJob': (object) => cronJobSections(object as CronJob),
  'networking.k8s.io/v1 Ingress': (object) => ingressSections(object as Ingress),
  'rbac.authorization.k8s.io/v1 Role': (object) => roleSections(object as Role),
  'rbac.authorization.k8s.io/v1 ClusterRole': (object) => roleSections(object as ClusterRole),
  'rbac.authorization.k8s.io/v1 RoleBinding': (object) => bindingSections(object as RoleBinding),
  'rbac.authorization.k8s.io/v1 ClusterRoleBinding': (object) => bindingSections(object as ClusterRoleBinding),
}

/** Undefined for kinds without a summary here, whose fields are shown as they are. */
export function summaryOf(object: KubeObject): readonly Section[] | undefined {
  try {
    return BY_KIND[`${object.apiVersion} ${object.kind}`]?.(object)
  } catch (error) {
    // An object that a foreign server sends can lack fields that are required.
    if (error instanceof TypeError) return undefined
    throw error
  }
}
