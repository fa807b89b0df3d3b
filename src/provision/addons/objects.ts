/** Functions that build objects of addon manifests. Pure. */
import { stringifyYaml } from '#lib/yaml/yaml.ts'
import { ownImage } from '#model/own-image.ts'

import type { AddonPlacement, ClusterFile, Toleration, UpdateStrategy } from '../cluster.ts'

export const SYSTEM_NAMESPACE = 'kube-system'

export interface AddonContext {
  /** The digest of our program: pods are replaced when it changes. */
  readonly program: string
}

/** One manifest with all objects in apply order. */
export function manifestOf(objects: readonly object[]): string {
  return objects.map((each) => stringifyYaml(each)).join('---\n')
}

const RBAC = 'rbac.authorization.k8s.io'

export interface Rule {
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

export function rule(group: string, resources: string, verbs: string): Rule {
  return { apiGroups: [group], resources: resources.split(' '), verbs: verbs.split(' ') }
}

/** A service account with the rules as a cluster role. */
export function account(name: string, namespace: string, role: string, rules: readonly Rule[]): object[] {
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } },
    { apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata: { name: role }, rules },
    clusterBinding(role, role, name, namespace),
  ]
}

export function clusterBinding(name: string, role: string, of: string, namespace: string): object {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'ServiceAccount', name: of, namespace }],
  }
}

/** Binds a role of this namespace to an account of any namespace. */
export function binding(
  { name, namespace }: { readonly name: string; readonly namespace: string },
  role: string,
  subject: { readonly name: string; readonly namespace: string },
): object {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'RoleBinding',
    metadata: { name, namespace },
    roleRef: { apiGroup: RBAC, kind: 'Role', name: role },
    subjects: [{ kind: 'ServiceAccount', ...subject }],
  }
}

/** The image in the file that replaces ours; undefined without one. */
export function imageOf({ system_images }: ClusterFile, name: string): string | undefined {
  return system_images[name] || undefined
}

/** A container with our program. */
export function ownContainer(name: string, args: readonly string[], rest: object): object {
  return { name, image: ownImage(), imagePullPolicy: 'IfNotPresent', args, ...rest }
}

/** The only remaining capabilities. */
export function securityOf(...added: string[]): object {
  return {
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'], ...(added.length > 0 && { add: added }) },
    readOnlyRootFilesystem: true,
  }
}

/** Linux nodes that run user pods. */
export const ON_WORKERS: object = onNodes([{ key: 'node-role.kubernetes.io/worker', operator: 'Exists' }])
export const ON_LINUX: object = onNodes([])

function onNodes(further: readonly object[]): object {
  const matchExpressions = [{ key: 'kubernetes.io/os', operator: 'NotIn', values: ['windows'] }, ...further]
  const required = { nodeSelectorTerms: [{ matchExpressions }] }
  return { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } }
}

/** RKE's default: these pods tolerate all taints. */
const ALL_TAINTS: readonly Toleration[] = [
  { effect: 'NoExecute', operator: 'Exists' },
  { effect: 'NoSchedule', operator: 'Exists' },
]

export function placementOf(
  { node_selector, tolerations }: Pick<AddonPlacement, 'node_selector'> & Partial<AddonPlacement>,
  affinity: object,
): object {
  return {
    affinity,
    ...(Object.keys(node_selector).length > 0 && { nodeSelector: node_selector }),
    tolerations: tolerations === undefined || tolerations.length === 0 ? ALL_TAINTS : tolerations,
  }
}

/** The update strategy in the file, or RKE's. */
export function strategyOf(given: UpdateStrategy | undefined, byDefault: object): object {
  if (given === undefined) return { type: 'RollingUpdate', rollingUpdate: byDefault }
  const { strategy, rollingUpdate } = given
  if (strategy !== 'RollingUpdate') return { type: strategy }
  const isEmpty = Object.keys(rollingUpdate).length === 0
  return { type: strategy, rollingUpdate: isEmpty ? byDefault : rollingUpdate }
}

export function podTemplate(labels: object, { program }: AddonContext, spec: object): object {
  return { metadata: { labels, annotations: { 'build.hyperkube.io/program': program } }, spec }
}

/** The startup probe gates the others, because a start may be slow on a busy machine. */
export const TO_START = { periodSeconds: 2, failureThreshold: 150 } as const

export function httpProbe(path: string, port: number, rest: object = {}): object {
  return { httpGet: { path, port }, ...rest }
}
