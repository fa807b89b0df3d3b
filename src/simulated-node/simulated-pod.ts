/**
 * One pod on a simulated node. `step` advances it to the present and returns the time of the next change; `status` is
 * the status that a kubelet would write.
 */
import type { Pod, PodStatus } from '#apis/core/v1.ts'
import type { Rejection } from '#kubelet/pod/admission-rules.ts'
import { adopt } from '#kubelet/pod/adoption.ts'
import { crashLoopMessage, nextBackOff, retryMs } from '#kubelet/pod/back-off.ts'
import { planContainers } from '#kubelet/pod/container-plan.ts'
import { fieldPathOf, isRunning } from '#kubelet/pod/container-runs.ts'
import {
  crashBackOff,
  CREATED,
  DEADLINE_EXCEEDED,
  DEADLINE_MESSAGE,
  type EventSpec,
  failed,
  podText,
  present,
  pullBackOff,
  pulled,
  pullFailed,
  pulling,
  resized,
  STARTED,
  stopping,
} from '#kubelet/pod/events.ts'
import { refusalOf } from '#kubelet/pod/pod-admission.ts'
import { mergeConditions } from '#kubelet/pod/pod-conditions.ts'
import { podStatusOf, type PodView, rejectedStatusOf } from '#kubelet/pod/pod-status.ts'
import { goQuote } from '#lib/go/text.ts'
import type { Random } from '#lib/random.ts'
import { semanticEqual } from '#meta/object.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'
import { isTerminalPhase } from '#model/pods.ts'

import { behaviorOf, type Fault } from './fault.ts'
import { imageIdOf, imageSizeOf } from './image.ts'
import {
  advance,
  begin,
  dueMsOf,
  planRun,
  type SimulatedContainer,
  simulatedContainers,
  stopContainer,
} from './simulated-container.ts'

/** The services of a node that a pod uses. */
export interface Host {
  readonly random: Random
  readonly addresses: readonly string[]
  readonly images: Set<string>
  readonly faults: Iterable<Fault>
  /** Allocates an address, or keeps the given one if it belongs to this node. */
  takeAddress(known?: string): string
  releaseAddress(address: string): void
  /** Undefined if the pod fits; pods that already run (`isThere`) always fit. */
  admit(pod: Pod, isThere: boolean): Rejection | undefined
  release(pod: Pod): void
  /** `fieldPath` is set for events about a container. */
  recordEvent(pod: Pod, event: EventSpec, fieldPath?: string): void
}

/** Delay after a failure until the state becomes a back-off. */
const NOTICE_MS = 1000
/** Minimum time to stop after a preStop hook. */
const MIN_GRACE_MS = 2000

export class SimulatedPod {
  readonly #host: Host
  #pod: Pod
  #containers: SimulatedContainer[]
  readonly #startedMs: number
  #address: string | undefined
  #hasSandbox = false
  #verdict: PodView['verdict']
  /** When it began to end. */
  #endingSinceMs: number | undefined
  #isAdmitted: boolean
  #isRejected = false
  /** Volumes are mounted; for `isComplete` the environments are available as well. */
  isMounted = false
  isComplete = false
  mountTries = 0
  /** A previous step found it leaving. */
  wasLeaving = false
  /** The status on the server, as far as known. */
  written: PodStatus

  constructor(pod: Pod, host: Host, nowMs: number) {
    this.#host = host
    this.#pod = keptOf(pod)
    this.#containers = simulatedContainers(pod)
    this.written = pod.status
    const { startTime, podIP } = pod.status
    this.#startedMs = startTime === undefined ? nowMs : epochMsOf(startTime)
    this.#isAdmitted = startTime !== undefined
    if (startTime !== undefined) {
      host.admit(pod, true)
      adopt(this.#containers, pod.status)
    }
    this.isMounted = this.#containers.some(({ run }) => run !== undefined)
    this.#hasSandbox = podIP !== undefined
    if (podIP !== undefined && pod.spec.hostNetwork !== true) this.#address = host.takeAddress(podIP)
    this.applyFaults(nowMs)
  }

  get pod(): Pod {
    return this.#pod
  }

  get containers(): readonly SimulatedContainer[] {
    return this.#containers
  }

  /** Handles an update: a deletion, a resize, an ephemeral container, or conditions of other clients. */
  update(pod: Pod): void {
    const old = this.#pod
    this.#pod = keptOf(pod)
    if (old.metadata.generation !== pod.metadata.generation) this.#resize(old)
    const known = new Map(this.#containers.map((container) => [container.spec.name, container]))
    this.#containers = simulatedContainers(pod).map((fresh) => {
      const container = known.get(fresh.spec.name) ?? fresh
      container.spec = fresh.spec
      return container
    })
    this.written = { ...this.written, conditions: mergeConditions(pod.status.conditions, this.written.conditions) }
  }

  /** Ends all running containers, because the machine went down. */
  stopAll(nowMs: number): void {
    for (const container of this.#containers) {
      if (isRunning(container) && container.run !== undefined)
        container.run.end = { finishedMs: nowMs, exitCode: 255, reason: 'Unknown' }
      container.isReady = false
      container.isStarted = false
      container.startsMs = undefined
    }
  }

  /** Applies added or removed faults to running containers, as if they had existed from the start. */
  applyFaults(nowMs: number): void {
    for (const container of this.#containers) {
      const { run, runPlan } = container
      if (run === undefined || run.end !== undefined) continue
      const next = planRun(this.#pod, container, behaviorOf(this.#pod, container.spec, this.#host.faults))
      // A container cannot end before the fault was injected.
      const runMs = next.runMs === Infinity ? Infinity : Math.max(next.runMs, nowMs - run.startedMs)
      container.runPlan = { ...next, runMs: next.runMs === runPlan?.runMs ? next.runMs : runMs }
      for (const [kind, state] of container.probes ?? [])
        if (state.nextMs === Infinity) container.probes?.set(kind, { ...state, nextMs: nowMs })
    }
  }

  /**
   * Ended and being deleted without grace period: it will be gone before a status could be written, unless the server
   * stopped.
   */
  get isLeaving(): boolean {
    const { deletionGracePeriodSeconds, finalizers } = this.#pod.metadata
    return deletionGracePeriodSeconds === 0 && finalizers === undefined && isTerminalPhase(this.written.phase)
  }

  get isOver(): boolean {
    return this.#pod.metadata.deletionTimestamp === undefined
      ? isTerminalPhase(this.written.phase)
      : this.#plan().isOver && isTerminalPhase(this.written.phase)
  }

  /** Advances to `nowMs`; returns the time of the next change, Infinity for none. */
  step(nowMs: number): number {
    if (isTerminalPhase(this.written.phase)) return Infinity
    if (!this.#isAdmitted) this.#admit()
    this.#checkDeadline(nowMs)
    if (!this.isMounted && !this.#isEnding) return this.#dueMs(nowMs)
    // This loop ends: each pass starts, ends or probes something, and an ended container waits before it restarts.
    while (this.#advanceAll(nowMs) || this.#act(nowMs));
    return this.#dueMs(nowMs)
  }

  /** The current status. */
  status(nowMs: number): PodStatus {
    const startTime = timeOf(this.#startedMs)
    if (this.#isRejected) return rejectedStatusOf(this.#pod, this.written, { startTime, verdict: this.#verdict })
    const isGone = this.#isEnding && this.#plan().isOver
    const view: PodView = {
      records: this.#containers,
      hasSandbox: this.#hasSandbox && !isGone && !this.#isDone,
      isEnding: this.#isEnding,
      hostIps: this.#host.addresses,
      podIps: this.#address === undefined ? [] : [this.#address],
      startTime,
      verdict: this.#verdict,
    }
    return podStatusOf(this.#pod, this.written, view, nowMs)
  }

  /** Releases its address and resources. */
  leave(): void {
    if (this.#address !== undefined) this.#host.releaseAddress(this.#address)
    this.#address = undefined
    this.#host.release(this.#pod)
  }

  /** True if volumes or environments are still missing. */
  get isWaiting(): boolean {
    return !this.isComplete && !this.#isEnding && !isTerminalPhase(this.written.phase)
  }

  #admit(): void {
    this.#isAdmitted = true
    const rejection = this.#host.admit(this.#pod, false)
    if (rejection === undefined) return
    const { verdict, event } = refusalOf(rejection)
    this.#isRejected = true
    this.#verdict = verdict
    this.#host.recordEvent(this.#pod, event)
  }

  /** A resize is allocated and applied at once. */
  #resize({ spec }: Pod): void {
    const before = new Map(spec.containers.map(({ name, resources }) => [name, resources]))
    const containers = this.#pod.spec.containers
      .filter(({ name, resources }) => !semanticEqual(before.get(name), resources))
      .map(({ name, resources }) => ({ name, resources }))
    if (containers.length === 0) return
    const resizes = JSON.stringify({ containers, generation: this.#pod.metadata.generation })
    this.#host.recordEvent(this.#pod, resized('Started', resizes))
    this.#host.recordEvent(this.#pod, resized('Completed', resizes))
  }

  get #isEnding(): boolean {
    return this.#verdict !== undefined || this.#pod.metadata.deletionTimestamp !== undefined
  }

  /** All containers have ended, and none restarts. */
  get #isDone(): boolean {
    return this.#containers.some(({ run }) => run !== undefined) && this.#plan().isOver
  }

  #plan(): ReturnType<typeof planContainers> {
    return planContainers(this.#pod.spec, this.#containers, this.#isEnding)
  }

  /** Fails the pod when its deadline has passed. */
  #checkDeadline(nowMs: number): void {
    const { activeDeadlineSeconds } = this.#pod.spec
    if (activeDeadlineSeconds === undefined || this.#verdict !== undefined) return
    if (nowMs < this.#startedMs + activeDeadlineSeconds * 1000) return
    this.#verdict = { reason: 'DeadlineExceeded', message: DEADLINE_MESSAGE }
    this.#host.recordEvent(this.#pod, DEADLINE_EXCEEDED)
  }

  #advanceAll(nowMs: number): boolean {
    let hasChanged = false
    for (const container of this.#containers) {
      const events = advance(container, nowMs)
      if (events === undefined) continue
      hasChanged = true
      for (const event of events) this.#recordEvent(container, event)
    }
    return hasChanged
  }

  /** Returns true if anything was done. */
  #act(nowMs: number): boolean {
    const plan = this.#plan()
    if (!this.#hasSandbox && plan.start.length > 0) this.#open()
    const started = plan.start.filter((container) => this.#start(container as SimulatedContainer, nowMs))
    const stopped = plan.stop.filter((container) => this.#stop(container as SimulatedContainer, nowMs))
    return started.length + stopped.length > 0
  }

  /** Creates the sandbox: containers can start, and the pod has an address. */
  #open(): void {
    this.#hasSandbox = true
    if (this.#pod.spec.hostNetwork !== true) this.#address ??= this.#host.takeAddress()
  }

  /** Returns true if it runs now. */
  #start(container: SimulatedContainer, nowMs: number): boolean {
    const ended = container.run?.end
    if (ended !== undefined && !this.#mayRestart(container, ended.finishedMs, nowMs)) return false
    if (container.configError !== undefined) {
      if (container.waiting?.message !== container.configError)
        this.#recordEvent(container, failed(container.configError))
      container.waiting = { reason: 'CreateContainerConfigError', message: container.configError }
      return false
    }
    if (container.startsMs === undefined) {
      const behavior = behaviorOf(this.#pod, container.spec, this.#host.faults)
      if (behavior.pullError !== undefined) {
        this.#failPull(container, behavior.pullError, nowMs)
        return false
      }
      this.#pull(container, behavior.pullMs ?? 0, nowMs)
    }
    if ((container.startsMs ?? nowMs) > nowMs) return false
    if (ended !== undefined) container.restarts = nextBackOff(container.restarts, ended.finishedMs, nowMs)
    const runPlan = planRun(this.#pod, container, behaviorOf(this.#pod, container.spec, this.#host.faults))
    begin(container, `simulated://${this.#host.random.bytes(32).toString('hex')}`, runPlan, nowMs)
    this.#recordEvent(container, CREATED)
    this.#recordEvent(container, STARTED)
    return true
  }

  #mayRestart(container: SimulatedContainer, finishedMs: number, nowMs: number): boolean {
    if (container.startsMs !== undefined || nowMs >= retryMs(container.restarts, finishedMs)) return true
    if (container.restarts === undefined || container.waiting !== undefined || nowMs < finishedMs + NOTICE_MS)
      return false
    const pod = podText(this.#pod)
    const { name } = container.spec
    container.waiting = { reason: 'CrashLoopBackOff', message: crashLoopMessage(container.restarts, name, pod) }
    this.#recordEvent(container, crashBackOff(name, pod))
    return false
  }

  #pull(container: SimulatedContainer, pullMs: number, nowMs: number): void {
    const { image = '', imagePullPolicy } = container.spec
    const { images } = this.#host
    container.startsMs = nowMs
    container.imageId = imageIdOf(image)
    if (images.has(image) && imagePullPolicy !== 'Always') return this.#recordEvent(container, present(image))
    images.add(image)
    container.startsMs = nowMs + pullMs
    this.#recordEvent(container, pulling(image))
    this.#recordEvent(
      container,
      pulled(image, { tookMs: pullMs, withWaitingMs: pullMs, sizeBytes: imageSizeOf(image) }),
    )
  }

  #failPull(container: SimulatedContainer, message: string, nowMs: number): void {
    const { image = '' } = container.spec
    const { failedPull } = container
    if (failedPull !== undefined && nowMs < retryMs(container.pulls, failedPull.atMs)) {
      if (container.waiting?.reason === 'ImagePullBackOff' || nowMs < failedPull.atMs + NOTICE_MS) return
      const text = `Back-off pulling image ${goQuote(image)}: ErrImagePull: ${failedPull.error}`
      container.waiting = { reason: 'ImagePullBackOff', message: text }
      this.#recordEvent(container, pullBackOff(image))
      this.#recordEvent(container, failed('ImagePullBackOff'))
      return
    }
    const error = message === '' ? `failed to pull and unpack image ${goQuote(image)}: not found` : message
    container.pulls = nextBackOff(container.pulls, nowMs, nowMs)
    container.failedPull = { atMs: nowMs, error }
    container.waiting = { reason: 'ErrImagePull', message: error }
    this.#recordEvent(container, pulling(image))
    this.#recordEvent(container, pullFailed(image, error))
    this.#recordEvent(container, failed('ErrImagePull'))
  }

  /** Returns true if it was stopped now. */
  #stop(container: SimulatedContainer, nowMs: number): boolean {
    if (container.stop !== undefined) return false
    this.#endingSinceMs ??= nowMs
    const { deletionGracePeriodSeconds } = this.#pod.metadata
    const { terminationGracePeriodSeconds = 30 } = this.#pod.spec
    const graceMs = (deletionGracePeriodSeconds ?? terminationGracePeriodSeconds) * 1000
    const leftMs = Math.max(graceMs - (nowMs - this.#endingSinceMs), MIN_GRACE_MS)
    const behavior = behaviorOf(this.#pod, container.spec, this.#host.faults)
    const hookMs = (container.spec.lifecycle?.preStop?.sleep?.seconds ?? 0) * 1000
    stopContainer(container, leftMs, (behavior.stopMs ?? 0) + hookMs, nowMs)
    this.#recordEvent(container, stopping(container.spec.name))
    return true
  }

  #dueMs(nowMs: number): number {
    const { activeDeadlineSeconds = Infinity } = this.#pod.spec
    const deadlineMs = this.#verdict === undefined ? this.#startedMs + activeDeadlineSeconds * 1000 : Infinity
    const dues = this.#containers.map((container) =>
      Math.min(dueMsOf(container), this.#isEnding ? Infinity : waitMsOf(container, nowMs)),
    )
    return Math.min(deadlineMs, ...dues)
  }

  #recordEvent(container: SimulatedContainer, event: EventSpec): void {
    this.#host.recordEvent(this.#pod, event, fieldPathOf(container))
  }
}

/** The pod without managed fields and status, which use as much memory as the rest. */
function keptOf({ metadata, spec }: Pod): Pod {
  const { managedFields: _, ...kept } = metadata
  return { metadata: kept, spec, status: NO_STATUS }
}

const NO_STATUS: PodStatus = {}

/** When a container that waits for a retry has to be checked again. */
function waitMsOf({ run, restarts, waiting, pulls, failedPull, startsMs }: SimulatedContainer, nowMs: number): number {
  if (startsMs !== undefined) return Infinity
  if (failedPull !== undefined) return next(failedPull.atMs, retryMs(pulls, failedPull.atMs), nowMs)
  if (run?.end === undefined) return Infinity
  const retry = retryMs(restarts, run.end.finishedMs)
  return retry <= nowMs || waiting !== undefined
    ? retry > nowMs
      ? retry
      : Infinity
    : next(run.end.finishedMs, retry, nowMs)
}

/** First the time at which the back-off becomes visible, then its end. */
function next(failedMs: number, retryAtMs: number, nowMs: number): number {
  return failedMs + NOTICE_MS > nowMs ? failedMs + NOTICE_MS : retryAtMs
}
