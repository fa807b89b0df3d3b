/** Indexes the pods of a node by UID, with views for the kubelet API, metrics and eviction. */
import type { Pod, PodCondition, PodStatus } from '#apis/core/v1.ts'

import { type ContainerRecord, idOf } from '../pod/container-runs.ts'
import type { PendingResize } from '../pod/pod-allocation.ts'
import type { ContainerOfPod, Instance, PodOfNode } from '../pod/pod-of-node.ts'
import type { PodView } from '../pod/pod-status.ts'
import { podLogDirectory } from '../pod/sandbox-config.ts'

/** The worker of a pod. */
export interface ManagedPod {
  readonly pod: Pod
  readonly records: readonly ContainerRecord[]
  readonly sandboxId: string | undefined
  /** All containers have ended for good. */
  readonly isFinished: boolean
  /** Resolves when the pod has ended and all its volumes are unmounted. */
  readonly unmounted: Promise<void>
  /** A deferred resize. */
  readonly waitingResize: PendingResize | undefined
  /** The current status. */
  status(): PodStatus
  update(pod: Pod): void
  /** The API server no longer has the pod. */
  forget(): void
  wake(): void
  retryResize(): void
  /** Fails the whole pod within `graceSeconds`. Resolves when its containers have ended. */
  end(verdict: NonNullable<PodView['verdict']>, graceSeconds: number, condition?: PodCondition): Promise<void>
  stop(): void
}

/** By UID. */
export class PodRegistry extends Map<string, ManagedPod> {
  readonly #podLogsDir: string

  constructor(podLogsDir: string) {
    super()
    this.#podLogsDir = podLogsDir
  }

  of({ metadata: { uid = '' } }: Pick<Pod, 'metadata'>): ManagedPod | undefined {
    return this.get(uid)
  }

  *pods(): Iterable<PodOfNode> {
    for (const worker of this.values()) yield this.#viewOf(worker)
  }

  /** Pods whose containers have not all ended for good. */
  *activePods(): Iterable<PodOfNode> {
    for (const worker of this.values()) if (!worker.isFinished) yield this.#viewOf(worker)
  }

  /** `uid` excludes a newer pod of the same name. */
  find(namespace: string, name: string, uid?: string): PodOfNode | undefined {
    for (const worker of this.values()) {
      const { metadata } = worker.pod
      if (metadata.namespace !== namespace || metadata.name !== name) continue
      if (uid === undefined || metadata.uid === uid) return this.#viewOf(worker)
    }
    return undefined
  }

  #viewOf(worker: ManagedPod): PodOfNode {
    const { pod } = worker
    const dir = podLogDirectory(pod, this.#podLogsDir)
    const containers = worker.records.map((record) => [record.spec.name, containerOf(record, dir)] as const)
    return { pod: { ...pod, status: worker.status() }, sandboxId: worker.sandboxId, containers: new Map(containers) }
  }
}

function containerOf(record: ContainerRecord, dir: string): ContainerOfPod {
  const { restartCount, lastRun, spec } = record
  const of = (id: string | undefined, attempt: number): Instance | undefined =>
    id === undefined ? undefined : { containerId: id, logPath: `${dir}/${spec.name}/${attempt}.log` }
  const previous = lastRun === undefined ? undefined : idOf({ run: lastRun })
  return { record, current: of(idOf(record), restartCount), previous: of(previous, restartCount - 1) }
}
