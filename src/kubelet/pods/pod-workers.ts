/**
 * The pods of a node: one worker each, which brings it from being bound to being gone. What the API server says of pods
 * comes in by `learn`; what containers do comes from the runtime.
 */
import type { Node, Pod, Service } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { EventRecorder } from '#client/event-recorder.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'
import type { ObjectEvent } from '#meta/watch.ts'

import { recordsOf } from '../container-runs.ts'
import type { Runtime } from '../cri/runtime.ts'
import type { PodFacts, PodOfNode } from './pod-of-node.ts'

export interface PodWorkersOptions {
  readonly runtime: Runtime
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** As `system:node:<name>`. */
  readonly client: ApiClient
  readonly recorder: EventRecorder
  /** As the API server has it; undefined until it was read. */
  readonly node: () => Node | undefined
  readonly facts: PodFacts
  /** All of them: containers are told where those of their namespace are. */
  readonly services: () => readonly Service[]
}

export class PodWorkers {
  readonly #pods = new Map<string, Pod>()

  readonly #log: Logger

  constructor({ log }: PodWorkersOptions) {
    this.#log = log
  }

  /** News of a pod that is bound to this node. */
  learn({ type, object }: ObjectEvent<Pod>): void {
    if (type === 'BOOKMARK') return
    const { uid = '' } = object.metadata
    this.#log.v(4)?.info('Learnt of pod', { type, uid })
    if (type === 'DELETED') this.#pods.delete(uid)
    else this.#pods.set(uid, object)
  }

  /** Every pod of the node has been learnt: whatever else the runtime holds belongs to nobody. */
  sourcesReady(): void {}

  *pods(): Iterable<PodOfNode> {
    for (const pod of this.#pods.values()) yield viewOf(pod)
  }

  /** `uid` guards against another of the same name. */
  find(namespace: string, name: string, uid?: string): PodOfNode | undefined {
    for (const pod of this.#pods.values()) {
      const { metadata } = pod
      if (metadata.namespace !== namespace || metadata.name !== name) continue
      if (uid === undefined || metadata.uid === uid) return viewOf(pod)
    }
    return undefined
  }

  /** Nothing is done any more; containers go on running, to be found again. */
  async stop(): Promise<void> {}
}

function viewOf(pod: Pod): PodOfNode {
  const containers = recordsOf(pod.spec).map(
    (record) => [record.spec.name, { record, current: undefined, previous: undefined }] as const,
  )
  return { pod, sandboxId: undefined, containers: new Map(containers) }
}
