/**
 * Admits pods and resizes to the node, and allocates exclusive CPUs, memory and devices. A critical pod may preempt
 * other pods.
 */
import type { Node, Pod } from '#apis/core/v1.ts'
import type { Clock, Timer } from '#lib/clock.ts'

import type { ContainerManager } from '../container-manager/container-manager.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import { isCritical, type NodeTraits, type Rejection } from '../pod/admission-rules.ts'
import { AllocatedResources, rejectionLabel } from '../pod/pod-admission.ts'
import { compareResizes } from '../pod/pod-allocation.ts'
import { disruptionOf } from '../pod/pod-conditions.ts'
import { choosePreempted, mayPreempt } from '../pod/preemption.ts'
import type { PodRegistry } from './pod-registry.ts'
import type { RecordPodEvent } from './record-events.ts'

export interface NodeAdmissionOptions {
  readonly registry: PodRegistry
  readonly clock: Clock
  readonly meters: KubeletMeters
  readonly containerManager: ContainerManager
  /** From the API server; undefined until it was read. */
  readonly node: () => Node | undefined
  /** Read at each admission. */
  readonly traits?: (() => NodeTraits) | undefined
  readonly recordEvent: RecordPodEvent
}

const PREEMPTED = 'Preempted in order to admit critical pod'
const PREEMPTION = 'Pod was preempted by Kubelet to accommodate a critical pod.'

export class NodeAdmission {
  readonly #options: NodeAdmissionOptions
  readonly #allocated = new AllocatedResources()
  #retry: Timer | undefined

  constructor(options: NodeAdmissionOptions) {
    this.#options = options
  }

  /** Charges a pod that already runs. */
  restore(pod: Pod): void {
    this.#charge(pod, true)
  }

  /** Undefined: the pod is admitted. */
  async admit(pod: Pod): Promise<Rejection | undefined> {
    const { containerManager, meters } = this.#options
    let rejection = this.#charge(pod, false)
    const isShort = rejection?.reason.startsWith('OutOf') === true && isCritical(pod)
    if (isShort && (await this.#preempt(pod))) rejection = this.#charge(pod, false)
    if (rejection === undefined) {
      rejection = await containerManager.admit(pod)
      if (rejection !== undefined) this.release(pod)
    }
    if (rejection !== undefined) {
      meters.family('kubelet_admission_rejections_total').labels(rejectionLabel(rejection)).inc()
    }
    return rejection
  }

  /** Undefined: the resize is allocated. */
  resize(pod: Pod): Rejection | undefined {
    const rejection = this.#allocated.resize(pod, this.#options.node())
    if (rejection === undefined) this.#retryResizes()
    return rejection
  }

  release(pod: Pod): void {
    this.#allocated.release(pod)
    this.#retryResizes()
  }

  stop(): void {
    this.#retry?.cancel()
  }

  #charge(pod: Pod, isThere: boolean): Rejection | undefined {
    return this.#allocated.admit(pod, this.#options.node(), isThere, this.#options.traits?.())
  }

  /** Resolves when the preempted pods have ended; false when none was preempted. */
  async #preempt(pod: Pod): Promise<boolean> {
    const { registry } = this.#options
    const node = this.#options.node()
    if (node === undefined) return false
    const others = [...registry.values()].filter((one) => !one.isFinished && mayPreempt(pod, one.pod))
    const candidates = others.map((one) => ({ pod: one.pod, takes: this.#allocated.takenBy(one.pod) }))
    const missing = this.#allocated.missing(pod, node)
    const chosen = choosePreempted(missing, candidates)
    const [signal = ''] = missing.keys()
    await Promise.all((chosen ?? []).map(({ pod: victim }) => this.#preemptPod(victim, signal)))
    return chosen !== undefined && chosen.length > 0
  }

  /** `signal` is the missing resource. */
  async #preemptPod(pod: Pod, signal: string): Promise<void> {
    const { meters, recordEvent, clock, registry } = this.#options
    meters.family('kubelet_preemptions').labels(signal).inc()
    recordEvent(pod, { type: 'Warning', reason: 'Preempting', message: PREEMPTED })
    const condition = disruptionOf(pod, PREEMPTION, clock.now())
    await registry.of(pod)?.end({ reason: 'Preempting', message: PREEMPTED }, 0, condition)
    this.#allocated.release(pod)
  }

  /** Retries deferred resizes in order, after the current change is done. */
  #retryResizes(): void {
    const { clock, registry } = this.#options
    this.#retry?.cancel()
    const retry = (): void => {
      const waiting = [...registry.values()].flatMap((worker) => {
        const resize = worker.waitingResize
        return resize === undefined ? [] : [{ worker, resize }]
      })
      for (const { worker } of waiting.sort((a, b) => compareResizes(a.resize, b.resize))) worker.retryResize()
    }
    this.#retry = clock.after(0, retry, { background: true })
  }
}
