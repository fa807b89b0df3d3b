/** Tells whether a workload still has pods of an old template: they may be ready while a new one cannot start. */
import type { DaemonSet, Deployment, StatefulSet } from '#apis/apps/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { kubernetesKind } from './kubernetes-kind.ts'

export interface Rollout {
  /** Pods of the newest template. */
  readonly updated: number
  readonly wanted: number
}

/** Undefined if no old pods are left, or if the kind has no rollouts. */
export function rolloutOf(object: KubeObject): Rollout | undefined {
  const whole = { spec: {}, status: {}, ...object }
  const found = BY_KIND[kubernetesKind(object)]?.(whole)
  return found?.isOver === false ? { updated: found.updated, wanted: found.wanted } : undefined
}

interface Counted extends Rollout {
  readonly isOver: boolean
}

const BY_KIND: Readonly<Record<string, (object: KubeObject) => Counted>> = {
  Deployment: (object) => deployment(object as Deployment),
  StatefulSet: (object) => statefulSet(object as StatefulSet),
  DaemonSet: (object) => daemonSet(object as DaemonSet),
}

/** A status that the controller has not written yet has no numbers: nothing is greater then. */
function deployment({ spec, status }: Deployment): Counted {
  const { updatedReplicas: updated = 0, replicas = 0 } = status
  return { updated, wanted: spec.replicas ?? 1, isOver: !(replicas > updated) }
}

function statefulSet({ spec, status }: StatefulSet): Counted {
  const { updatedReplicas: updated = 0, replicas, currentRevision, updateRevision } = status
  const { type = 'RollingUpdate', rollingUpdate } = spec.updateStrategy ?? {}
  const isByHand = type === 'OnDelete' || (rollingUpdate?.partition ?? 0) > 0
  const isOver = isByHand || currentRevision === updateRevision || !(replicas > updated)
  return { updated, wanted: spec.replicas ?? 1, isOver }
}

function daemonSet({ spec, status }: DaemonSet): Counted {
  const { updatedNumberScheduled: updated = 0, desiredNumberScheduled: wanted, currentNumberScheduled } = status
  return { updated, wanted, isOver: spec.updateStrategy?.type === 'OnDelete' || !(currentNumberScheduled > updated) }
}
