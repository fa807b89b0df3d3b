/** Which pods the page of an object lists: those of a workload, behind a Service, on a node, or with a claim. */
import type { KubeObject } from '#meta/object.ts'

import { kubernetesKind } from './kubernetes-kind.ts'
import { podSelectorOf, selectorQuery } from './selector.ts'

export interface PodsOf {
  /** Empty: all. */
  readonly namespace: string
  readonly labels: string
  readonly fields: string
}

const WORKLOADS: ReadonlySet<string> = new Set([
  'Deployment',
  'ReplicaSet',
  'StatefulSet',
  'DaemonSet',
  'Job',
  'ReplicationController',
  'Service',
  'PodDisruptionBudget',
])

export function podsOf(object: KubeObject): PodsOf | undefined {
  const kind = kubernetesKind(object)
  const { metadata } = object
  const { namespace = '', name = '' } = metadata
  if (kind === 'Node') return { namespace: '', labels: '', fields: `spec.nodeName=${name}` }
  if (!WORKLOADS.has(kind)) return undefined
  const labels = selectorQuery(podSelectorOf(object))
  return labels === undefined ? undefined : { namespace, labels, fields: '' }
}
