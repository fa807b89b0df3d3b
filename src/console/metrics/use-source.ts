/** Which values of the metrics API belong to the page of an object, and what its chart shows. */
import type { Node, Pod } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { type KindAddress, listPath, objectPath } from '../api/kinds.ts'
import { conditionOf } from '../objects/conditions.ts'
import { kubernetesKind } from '../objects/kubernetes-kind.ts'
import { podsOf } from '../objects/pods-of.ts'
import type { Resource } from './amount.ts'
import { type ChartData, type Mark, valuesOf } from './chart-plan.ts'
import { allocatableOf, demandOf, isLimited } from './demand.ts'
import { MAX_LINES, type Point } from './history.ts'
import type { Reading } from './reading.ts'

const metrics = (plural: string): KindAddress => ({ group: 'metrics.k8s.io', version: 'v1beta1', plural })
const PODS: KindAddress = { group: '', version: 'v1', plural: 'pods' }
const NOT_MEASURED = new Set(['Service', 'PodDisruptionBudget'])

export const NODE_METRICS: string = listPath(metrics('nodes'))

export interface UseSource {
  /** Of the metrics API. */
  readonly path: string
  /** The pods whose requests and limits count. Undefined: the object is the pod. */
  readonly pods: string | undefined
}

/** Undefined for objects without use, such as pods that have ended. */
export function useSourceOf(object: KubeObject): UseSource | undefined {
  const kind = kubernetesKind(object)
  const { metadata } = object
  const { name = '', namespace = '' } = metadata
  if (kind === 'Pod') {
    const { phase } = (object as Pod).status
    if (phase === 'Succeeded' || phase === 'Failed') return undefined
    return { path: objectPath(metrics('pods'), { namespace, name }), pods: undefined }
  }
  const pods = podsOf(object)
  if (pods === undefined || NOT_MEASURED.has(kind) || isOver(object)) return undefined
  const { labels, fields } = pods
  if (kind === 'Node') {
    return {
      path: objectPath(metrics('nodes'), { name }),
      pods: `${listPath(PODS)}?fieldSelector=${encodeURIComponent(fields)}`,
    }
  }
  const selector = `?labelSelector=${encodeURIComponent(labels)}`
  return { path: listPath(metrics('pods'), namespace) + selector, pods: listPath(PODS, namespace) + selector }
}

/** Jobs that have ended use nothing. */
function isOver(object: KubeObject): boolean {
  const ends = ['Complete', 'Failed'].map((type) => conditionOf(object, type)?.status)
  return kubernetesKind(object) === 'Job' && ends.includes('True')
}

/** The lines and marks of the chart of an object. */
export function chartOf(
  resource: Resource,
  object: KubeObject,
  {
    points,
    reading,
    pods,
  }: { readonly points: readonly Point[]; readonly reading: Reading; readonly pods: readonly Pod[] },
): ChartData {
  const names = kubernetesKind(object) === 'Pod' ? reading.parts.slice(0, MAX_LINES).map(({ name }) => name) : []
  const lines =
    names.length > 1
      ? names.map((name) => ({
          name,
          values: valuesOf(
            points.map(({ parts }) => parts[name]),
            resource,
          ),
        }))
      : [
          {
            name: 'Use',
            values: valuesOf(
              points.map(({ total }) => total),
              resource,
            ),
          },
        ]
  return { resource, timesMs: points.map(({ timeMs }) => timeMs), lines, marks: marksOf(resource, object, pods) }
}

function marksOf(resource: Resource, object: KubeObject, pods: readonly Pod[]): readonly Mark[] {
  const { requests, limits } = demandOf(pods)
  const isShown = kubernetesKind(object) === 'Node' || isLimited(pods, resource)
  return [
    { name: 'Requests', value: requests[resource] },
    ...(isShown ? [{ name: 'Limits', value: limits[resource] }] : []),
    ...(kubernetesKind(object) === 'Node'
      ? [{ name: 'Allocatable', value: allocatableOf(object as Node)[resource], isWhole: true }]
      : []),
  ]
}
