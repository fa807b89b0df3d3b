/** The logs tab of an object: of a pod, or of all pods of a workload. */
import type { VNode } from 'preact'

import type { Pod } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { clusterPath, listPath } from '../api/kinds.ts'
import { kubernetesKind } from '../objects/kubernetes-kind.ts'
import { useLive } from '../objects/live.ts'
import { podsOf } from '../objects/pods-of.ts'
import { Notice } from '../parts/notice.tsx'
import { LogPage } from './log-page.tsx'
import type { LogContainer } from './log-sources.ts'

interface ObjectLogsProps {
  readonly cluster: string
  readonly object: KubeObject
}

const PODS = { group: '', version: 'v1', plural: 'pods' }

export function ObjectLogs({ cluster, object }: ObjectLogsProps): VNode {
  const pods = podsOf(object)
  const isPod = kubernetesKind(object) === 'Pod'
  const path =
    pods && clusterPath(cluster, `${listPath(PODS, pods.namespace)}?labelSelector=${encodeURIComponent(pods.labels)}`)
  const { objects, state } = useLive(isPod ? undefined : path)
  const all = isPod ? [object] : objects
  if (!isPod && state.type === 'failed') return <Notice title="The pods cannot be listed" text={state.message} />
  if (!isPod && state.type === 'loading' && objects.length === 0) return <p class="loading">Loading pods …</p>
  return (
    <LogPage cluster={cluster} containers={containersOf(all as readonly Pod[])} title={object.metadata.name ?? ''} />
  )
}

/** Those that have started: others have no log. */
function containersOf(pods: readonly Pod[]): readonly LogContainer[] {
  return pods.flatMap(({ metadata, status }) => {
    const { namespace = '', name: pod = '' } = metadata
    const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]
    return statuses
      .filter(({ state, restartCount }) => state?.waiting === undefined || (restartCount ?? 0) > 0)
      .map(({ name: container }) => ({ namespace, pod, container }))
  })
}
