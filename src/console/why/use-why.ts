/** Reads what explains an object: its node, or its pods while some are missing. */
import { useEffect, useState } from 'preact/hooks'

import type { Event, Node, Pod } from '#apis/core/v1.ts'
import type { KubeList, KubeObject } from '#meta/object.ts'

import { clusterPath, listPath } from '../api/kinds.ts'
import { RequestError, sendForJson } from '../api/request.ts'
import { itemsOf } from '../lists/follow-objects.ts'
import { kubernetesKind } from '../objects/kubernetes-kind.ts'
import { podsOf } from '../objects/pods-of.ts'
import { rolloutOf } from '../objects/rollout.ts'
import type { Cause } from './cause.ts'
import { whyObject } from './why-object.ts'

/** More pods than this do not explain more. */
const MAX_PODS = 50

interface Found {
  readonly node?: Node
  readonly pods?: readonly Pod[]
}

/** The chain of causes; empty for an object that is ready. */
export function useWhy(cluster: string, object: KubeObject | undefined, events: readonly Event[]): readonly Cause[] {
  const [found, setFound] = useState<Found>({})
  const path = object === undefined ? undefined : evidencePath(object)
  const version = object?.metadata.resourceVersion
  // The pods of a workload change without it, and write events.
  const pulse = object !== undefined && kubernetesKind(object) === 'Pod' ? '' : String(events.length)
  useEffect(() => {
    if (path === undefined) {
      setFound({})
      return undefined
    }
    const stop = new AbortController()
    sendForJson<KubeObject>(clusterPath(cluster, path), { signal: stop.signal }).then(
      (answer) => setFound(foundOf(answer)),
      (error: unknown) => {
        // The chain is shorter for users who may not read these.
        if (error instanceof RequestError) setFound({})
      },
    )
    return () => stop.abort()
  }, [cluster, path, version, pulse])
  return object === undefined ? [] : whyObject({ spec: {}, status: {}, ...object } as KubeObject, { events, ...found })
}

function foundOf(answer: KubeObject): Found {
  if (answer.kind === 'Node') return { node: answer as Node }
  return { pods: itemsOf(answer as KubeList<KubeObject>) as readonly Pod[] }
}

const WORKLOADS: ReadonlySet<string> = new Set(['Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet', 'Job'])

function evidencePath(object: KubeObject): string | undefined {
  if (kubernetesKind(object) === 'Pod') {
    const { nodeName = '' } = (object as Pod).spec
    return nodeName === '' ? undefined : `/api/v1/nodes/${encodeURIComponent(nodeName)}`
  }
  const pods =
    WORKLOADS.has(kubernetesKind(object)) && (!isWhole(object) || rolloutOf(object) !== undefined)
      ? podsOf(object)
      : undefined
  if (pods === undefined) return undefined
  const query = new URLSearchParams({ labelSelector: pods.labels, limit: String(MAX_PODS) }).toString()
  return `${listPath({ group: '', version: 'v1', plural: 'pods' }, pods.namespace)}?${query}`
}

interface Counts {
  readonly readyReplicas?: number
  readonly numberReady?: number
  readonly desiredNumberScheduled?: number
  readonly succeeded?: number
}

function isWhole(object: KubeObject): boolean {
  const { spec, status } = object as { spec?: { replicas?: number }; status?: Counts }
  const wanted = spec?.replicas ?? status?.desiredNumberScheduled ?? 1
  return (status?.readyReplicas ?? status?.numberReady ?? status?.succeeded ?? 0) >= wanted
}
