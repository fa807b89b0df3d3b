/**
 * Runs one pod from binding to removal. Each event changes the pod's state and triggers a sync, which plans and
 * executes actions.
 */
import type { Pod, PodCondition, PodStatus } from '#apis/core/v1.ts'
import type { Timer } from '#lib/clock.ts'
import { isTerminalPhase } from '#model/pods.ts'

import { PodStartup } from '../metrics/pod-startup.ts'
import { type ContainerRecord, isRunning } from '../pod/container-runs.ts'
import { allocationOf, type PendingResize } from '../pod/pod-allocation.ts'
import type { PodView } from '../pod/pod-status.ts'
import { pendingResizeOf } from '../pod/resize-state.ts'
import { shortenGrace } from './containers/container-stopper.ts'
import { perform, syncPod } from './pod-actions.ts'
import { currentStatus, type PodContext, publish } from './pod-context.ts'
import type { PodHost } from './pod-host.ts'
import { planDeadline } from './pod-plan.ts'
import { PodProbes } from './pod-probes.ts'
import type { ManagedPod } from './pod-registry.ts'
import { applyAllocation, createPodState, deadlineMsOf, isEnding, isPastDeadline, type PodState } from './pod-state.ts'
import { PodSyncLoop } from './pod-sync-loop.ts'
import { allocateResize } from './resize-pod.ts'
import { type StatusSink, statusWriterOf } from './status-writer.ts'

/** A source of pods that are not on the API server. */
export interface PodOwner {
  readonly writer: StatusSink
  /** Called when nothing of the pod is left. */
  readonly gone: () => void
}

export class PodWorker implements ManagedPod {
  readonly #host: PodHost
  readonly #state: PodState
  readonly #context: PodContext
  readonly #syncLoop: PodSyncLoop
  /** Aborted when no container may be started any more. */
  readonly #starting = new AbortController()
  #deadline: Timer | undefined

  constructor(pod: Pod, host: PodHost, owner?: PodOwner) {
    const { metadata, spec, status } = pod
    const { uid = '' } = metadata
    const state = createPodState(pod, host.allocations.get(uid) ?? allocationOf(spec), host.clock.now())
    if (status.startTime !== undefined) host.admission.restore(state.pod)
    this.#host = host
    this.#state = state
    this.#context = {
      host,
      state,
      writer: owner?.writer ?? statusWriterOf(host, pod),
      startup: new PodStartup(host.meters, pod),
      probes: new PodProbes({ host, state, changed: () => this.#probed() }),
      signal: this.#starting.signal,
      ended: Promise.withResolvers(),
      unmounted: Promise.withResolvers(),
      gone: () => {
        this.#deadline?.cancel()
        host.registry.delete(uid)
        owner?.gone()
      },
    }
    this.#syncLoop = new PodSyncLoop(this.#context, () => syncPod(this.#context))
    this.#watchDeadline()
  }

  get pod(): Pod {
    return this.#state.pod
  }

  get records(): readonly ContainerRecord[] {
    return this.#state.records
  }

  get sandboxId(): string | undefined {
    return this.#state.sandbox?.id
  }

  get isFinished(): boolean {
    const { hasEnded, records } = this.#state
    return hasEnded || (isTerminalPhase(this.#context.writer.latest.phase) && !records.some(isRunning))
  }

  get unmounted(): Promise<void> {
    return this.#context.unmounted.promise
  }

  get waitingResize(): PendingResize | undefined {
    return isEnding(this.#state) ? undefined : pendingResizeOf(this.#state.desired, this.#state.resize)
  }

  status(): PodStatus {
    return currentStatus(this.#context)
  }

  update(pod: Pod): void {
    const { startup, writer } = this.#context
    const before = this.#state.pod.metadata.deletionGracePeriodSeconds ?? Infinity
    this.#state.desired = pod
    startup.observePod(pod, this.#host.clock.now())
    this.#syncLoop.markUpdate()
    applyAllocation(this.#state)
    writer.updateConditions(pod.status.conditions)
    const grace = pod.metadata.deletionGracePeriodSeconds ?? Infinity
    if (grace < before) shortenGrace(this.#context, grace)
    this.#watchDeadline()
    this.wake()
  }

  retryResize(): void {
    if (allocateResize(this.#context)) this.wake()
  }

  forget(): void {
    this.#state.isDeleted = true
    this.#context.writer.isGone = true
    // A replacement pod need not wait for this one.
    this.#host.admission.release(this.#state.pod)
    shortenGrace(this.#context, 0)
    this.wake()
  }

  wake(): void {
    if (isEnding(this.#state)) this.#starting.abort()
    this.#syncLoop.wake()
  }

  end(verdict: NonNullable<PodView['verdict']>, graceSeconds: number, condition?: PodCondition): Promise<void> {
    const state = this.#state
    if (!isEnding(state)) {
      state.verdict = verdict
      state.disruption = condition
    }
    state.maxGraceSeconds = Math.min(state.maxGraceSeconds, graceSeconds)
    this.wake()
    return this.#context.ended.promise
  }

  stop(): void {
    this.#syncLoop.stop()
    this.#deadline?.cancel()
    this.#starting.abort()
    this.#context.probes.end()
  }

  /** The sync that ends a pod may take the whole grace period without publishing a status. */
  #probed(): void {
    if (isEnding(this.#state)) publish(this.#context)
    this.wake()
  }

  /** The deadline also passes while a sync waits for the runtime. */
  #watchDeadline(): void {
    const { clock } = this.#host
    this.#deadline?.cancel()
    const leftMs = deadlineMsOf(this.#state) - clock.now()
    if (leftMs <= 0 || !Number.isFinite(leftMs)) return
    const passed = (): void => {
      if (isPastDeadline(this.#state, clock.now())) void perform(this.#context, planDeadline())
      this.wake()
    }
    this.#deadline = clock.after(leftMs, passed, { background: true })
  }
}
