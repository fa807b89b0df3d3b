/** Decides which pods of a node a drain evicts, by the rules of kubectl drain. */
import type { Pod } from '#apis/core/v1.ts'

import { objectPath } from '../api/kinds.ts'
import type { ActionRequest } from './action.ts'

export interface DrainPlan {
  readonly evicted: readonly Pod[]
  /** Pods that stay, with the reason. */
  readonly kept: readonly { readonly pod: Pod; readonly reason: string }[]
  /** Pods that no controller makes again. */
  readonly unmanaged: readonly Pod[]
  /** Pods that lose data of emptyDir volumes. */
  readonly losing: readonly Pod[]
}

const MIRROR = 'kubernetes.io/config.mirror'

export function planDrain(pods: readonly Pod[]): DrainPlan {
  const kept = pods.flatMap((pod) => {
    const reason = reasonToStay(pod)
    return reason === undefined ? [] : [{ pod, reason }]
  })
  const staying = new Set(kept.map(({ pod }) => pod))
  const evicted = pods.filter((pod) => !staying.has(pod))
  const isLive = ({ status }: Pod): boolean => status.phase !== 'Succeeded' && status.phase !== 'Failed'
  return {
    evicted,
    kept,
    unmanaged: evicted.filter((pod) => isLive(pod) && controllerKind(pod) === undefined),
    losing: evicted.filter(
      (pod) => isLive(pod) && (pod.spec.volumes ?? []).some(({ emptyDir }) => emptyDir !== undefined),
    ),
  }
}

function reasonToStay(pod: Pod): string | undefined {
  if (pod.metadata.annotations?.[MIRROR] !== undefined) return 'the kubelet runs it from a file'
  if (controllerKind(pod) === 'DaemonSet') return 'a DaemonSet runs it on every node'
  return undefined
}

function controllerKind({ metadata }: Pod): string | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)?.kind
}

export function evict({ metadata }: Pod): ActionRequest {
  const { name = '', namespace = '', uid = '' } = metadata
  const pods = { group: '', version: 'v1', plural: 'pods' }
  const body = {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name, namespace },
    deleteOptions: { preconditions: { uid } },
  }
  return { method: 'POST', path: objectPath(pods, { namespace, name }, 'eviction'), body }
}
