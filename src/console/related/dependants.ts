/** Finds the objects that an object owns, and those that these own, by their ownerReferences. */
import type { KubeList, KubeObject } from '#meta/object.ts'

import { clusterPath, type KindAddress, listPath } from '../api/kinds.ts'
import { RequestError, sendForJson } from '../api/request.ts'
import { itemsOf } from '../lists/follow-objects.ts'
import { kubernetesKind } from '../objects/kubernetes-kind.ts'
import { groupOf } from '../objects/ref.ts'

const PODS: KindAddress = { group: '', version: 'v1', plural: 'pods' }
const JOBS: KindAddress = { group: 'batch', version: 'v1', plural: 'jobs' }
const REPLICA_SETS: KindAddress = { group: 'apps', version: 'v1', plural: 'replicasets' }
const REVISIONS: KindAddress = { group: 'apps', version: 'v1', plural: 'controllerrevisions' }
const SLICES: KindAddress = { group: 'discovery.k8s.io', version: 'v1', plural: 'endpointslices' }
const CLAIMS: KindAddress = { group: '', version: 'v1', plural: 'persistentvolumeclaims' }

/** The kinds of objects that the controllers of Kubernetes make for a kind. */
const CHILDREN: Readonly<Record<string, readonly KindAddress[]>> = {
  Deployment: [REPLICA_SETS],
  ReplicaSet: [PODS],
  ReplicationController: [PODS],
  StatefulSet: [PODS, REVISIONS, CLAIMS],
  DaemonSet: [PODS, REVISIONS],
  Job: [PODS],
  CronJob: [JOBS],
  Service: [SLICES],
  Pod: [CLAIMS],
}

/** Operators make these for their custom resources. */
const COMMON: readonly KindAddress[] = [
  { group: 'apps', version: 'v1', plural: 'deployments' },
  { group: 'apps', version: 'v1', plural: 'statefulsets' },
  { group: 'apps', version: 'v1', plural: 'daemonsets' },
  JOBS,
  PODS,
  { group: '', version: 'v1', plural: 'services' },
  { group: '', version: 'v1', plural: 'configmaps' },
  { group: '', version: 'v1', plural: 'secrets' },
  CLAIMS,
]

/** Objects of these groups that are not listed own nothing. */
const BUILT_IN = /^$|^apps$|^batch$|^autoscaling$|^policy$|\.k8s\.io$/

/** Kinds whose objects an object of this kind may own. */
export function childKinds(object: KubeObject): readonly KindAddress[] {
  const group = groupOf(object.apiVersion ?? '')
  if (BUILT_IN.test(group)) return CHILDREN[kubernetesKind(object)] ?? []
  return COMMON
}

export interface Dependant {
  readonly object: KubeObject
  readonly children: readonly Dependant[]
}

/** Hostile references can form a circle. */
const MAX_DEPTH = 4
const MAX_OBJECTS = 500

/** The objects below an object. Kinds that the user may not list are left out. */
export async function readDependants(
  cluster: string,
  object: KubeObject,
  signal: AbortSignal,
): Promise<readonly Dependant[]> {
  const lists = new Map<string, Promise<readonly KubeObject[]>>()
  const list = (kind: KindAddress, namespace: string): Promise<readonly KubeObject[]> => {
    const path = listPath(kind, namespace)
    const known = lists.get(path) ?? readList(clusterPath(cluster, path), signal)
    lists.set(path, known)
    return known
  }
  return below(object, list, MAX_DEPTH)
}

type List = (kind: KindAddress, namespace: string) => Promise<readonly KubeObject[]>

async function below(object: KubeObject, list: List, depth: number): Promise<readonly Dependant[]> {
  const { uid, namespace = '' } = object.metadata
  if (depth === 0 || uid === undefined) return []
  const found = await Promise.all(childKinds(object).map((kind) => list(kind, namespace)))
  const owned = found.flat().filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.uid === uid))
  return Promise.all(owned.map(async (child) => ({ object: child, children: await below(child, list, depth - 1) })))
}

async function readList(path: string, signal: AbortSignal): Promise<readonly KubeObject[]> {
  try {
    return itemsOf(await sendForJson<KubeList<KubeObject>>(`${path}?limit=${MAX_OBJECTS}`, { signal }))
  } catch (error) {
    if (error instanceof RequestError) return []
    throw error
  }
}

export interface DependantCount {
  readonly kind: string
  readonly count: number
}

export async function countDependants(
  cluster: string,
  object: KubeObject,
  signal: AbortSignal,
): Promise<readonly DependantCount[]> {
  return countByKind(await readDependants(cluster, object, signal))
}

export function countByKind(dependants: readonly Dependant[]): readonly DependantCount[] {
  const counts = new Map<string, number>()
  const add = ({ object, children }: Dependant): void => {
    const { kind = '' } = object
    counts.set(kind, (counts.get(kind) ?? 0) + 1)
    for (const child of children) add(child)
  }
  for (const dependant of dependants) add(dependant)
  return [...counts].map(([kind, count]) => ({ kind, count }))
}
