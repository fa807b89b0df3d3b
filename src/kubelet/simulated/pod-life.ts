/**
 * One pod on a simulated node: from being seen to being gone. `step` brings it to the present and says when there is
 * something to do again; `status` is what a kubelet would write now.
 */
import type { Pod, PodStatus } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go-text.ts'
import type { Random } from '#lib/random.ts'
import { semanticEqual } from '#meta/object.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'
import { isTerminalPhase } from '#model/pods.ts'

import type { Rejection } from '../admission-rules.ts'
import { adopt } from '../adoption.ts'
import { crashLoopMessage, nextBackOff, retryMs } from '../back-off.ts'
import { planContainers } from '../container-plan.ts'
import { fieldPathOf, isRunning } from '../container-runs.ts'
import {
  crashBackOff,
  CREATED,
  DEADLINE_EXCEEDED,
  DEADLINE_MESSAGE,
  failed,
  type Note,
  podText,
  present,
  pullBackOff,
  pulled,
  pullFailed,
  pulling,
  resized,
  STARTED,
  stopping,
} from '../kubelet-notes.ts'
import { refusalOf } from '../pod-admission.ts'
import { conditionsKnown } from '../pod-conditions.ts'
import { podStatusOf, type PodView, rejectedStatusOf } from '../pod-status.ts'
import { advance, begin, conductOf, type ContainerLife, dueMsOf, livesOf, tellToStop } from './container-life.ts'
import { type Fault, wishesOf } from './fault.ts'
import { imageIdOf, imageSizeOf } from './image.ts'

/** What a pod needs of the node it is on. */
export interface Host {
  readonly random: Random
  readonly addresses: readonly string[]
  readonly images: Set<string>
  readonly faults: Iterable<Fault>
  /** An address for a pod; the one that it has already, if it is of this node. */
  takeAddress(known?: string): string
  giveBack(address: string): void
  /** Whether there is room for the pod; those who are there already are taken. */
  admit(pod: Pod, isThere: boolean): Rejection | undefined
  release(pod: Pod): void
  /** `fieldPath` for events about a container. */
  note(pod: Pod, said: Note, fieldPath?: string): void
}

/** How soon after something failed a kubelet says that it waits. */
const NOTICE_MS = 1000
/** What a container gets at least when its hook took all the time. */
const MIN_GRACE_MS = 2000

export class PodLife {
  readonly #host: Host
  #pod: Pod
  #lives: ContainerLife[]
  readonly #startedMs: number
  #address: string | undefined
  #hasSandbox = false
  #verdict: PodView['verdict']
  /** When it was told to end. */
  #endingSinceMs: number | undefined
  #isAdmitted: boolean
  #isRejected = false
  /** Its volumes are there; and all that its containers are made from as well. */
  isMounted = false
  isComplete = false
  mountTries = 0
  /** It was seen leaving before. */
  wasLeaving = false
  /** What the server has, as far as is known. */
  written: PodStatus

  constructor(pod: Pod, host: Host, nowMs: number) {
    this.#host = host
    this.#pod = keptOf(pod)
    this.#lives = livesOf(pod)
    this.written = pod.status
    const { startTime, podIP } = pod.status
    this.#startedMs = startTime === undefined ? nowMs : epochMsOf(startTime)
    this.#isAdmitted = startTime !== undefined
    if (startTime !== undefined) {
      host.admit(pod, true)
      adopt(this.#lives, pod.status)
    }
    this.isMounted = this.#lives.some(({ run }) => run !== undefined)
    this.#hasSandbox = podIP !== undefined
    if (podIP !== undefined && pod.spec.hostNetwork !== true) this.#address = host.takeAddress(podIP)
    this.reconsider(nowMs)
  }

  get pod(): Pod {
    return this.#pod
  }

  get lives(): readonly ContainerLife[] {
    return this.#lives
  }

  /** The server's news of it: deleted, resized, given another container to look into it, written to by others. */
  learn(pod: Pod): void {
    const old = this.#pod
    this.#pod = keptOf(pod)
    if (old.metadata.generation !== pod.metadata.generation) this.#resize(old)
    const known = new Map(this.#lives.map((life) => [life.spec.name, life]))
    this.#lives = livesOf(pod).map((fresh) => {
      const life = known.get(fresh.spec.name) ?? fresh
      life.spec = fresh.spec
      return life
    })
    this.written = { ...this.written, conditions: conditionsKnown(pod.status.conditions, this.written.conditions) }
  }

  /** Everything that ran has ended with the machine. */
  lose(nowMs: number): void {
    for (const life of this.#lives) {
      if (isRunning(life) && life.run !== undefined)
        life.run.end = { finishedMs: nowMs, exitCode: 255, reason: 'Unknown' }
      life.isReady = false
      life.isStarted = false
      life.startsMs = undefined
    }
  }

  /** What a fault that came or went makes of those that run: they behave as they would have from their start on. */
  reconsider(nowMs: number): void {
    for (const life of this.#lives) {
      const { run, conduct } = life
      if (run === undefined || run.end !== undefined) continue
      const next = conductOf(this.#pod, life, wishesOf(this.#pod, life.spec, this.#host.faults))
      // Nobody ends before the fault came.
      const runMs = next.runMs === Infinity ? Infinity : Math.max(next.runMs, nowMs - run.startedMs)
      life.conduct = { ...next, runMs: next.runMs === conduct?.runMs ? next.runMs : runMs }
      for (const [kind, state] of life.probes ?? [])
        if (state.nextMs === Infinity) life.probes?.set(kind, { ...state, nextMs: nowMs })
    }
  }

  /** Ended, and about to go without grace: it is gone before anything could be said of it, unless the server ended between. */
  get isLeaving(): boolean {
    const { deletionGracePeriodSeconds, finalizers } = this.#pod.metadata
    return deletionGracePeriodSeconds === 0 && finalizers === undefined && isTerminalPhase(this.written.phase)
  }

  get isOver(): boolean {
    return this.#pod.metadata.deletionTimestamp === undefined
      ? isTerminalPhase(this.written.phase)
      : this.#plan().isOver && isTerminalPhase(this.written.phase)
  }

  /** Brings it to `nowMs`; returns when something happens next, Infinity for never. */
  step(nowMs: number): number {
    if (isTerminalPhase(this.written.phase)) return Infinity
    if (!this.#isAdmitted) this.#admit()
    this.#judge(nowMs)
    if (!this.isMounted && !this.#isEnding) return this.#dueMs(nowMs)
    // Ends: each turn starts, ends or probes something, and who ends waits before it starts again.
    while (this.#advanceAll(nowMs) || this.#act(nowMs));
    return this.#dueMs(nowMs)
  }

  /** What a kubelet would say of it now. */
  status(nowMs: number): PodStatus {
    const startTime = timeOf(this.#startedMs)
    if (this.#isRejected) return rejectedStatusOf(this.#pod, this.written, { startTime, verdict: this.#verdict })
    const isGone = this.#isEnding && this.#plan().isOver
    const view: PodView = {
      records: this.#lives,
      hasSandbox: this.#hasSandbox && !isGone && !this.#isDone,
      isEnding: this.#isEnding,
      hostIps: this.#host.addresses,
      podIps: this.#address === undefined ? [] : [this.#address],
      startTime,
      verdict: this.#verdict,
    }
    return podStatusOf(this.#pod, this.written, view, nowMs)
  }

  /** Its address goes back to the node. */
  leave(): void {
    if (this.#address !== undefined) this.#host.giveBack(this.#address)
    this.#address = undefined
    this.#host.release(this.#pod)
  }

  /** Whether its volumes and what else it is made from have to be looked for. */
  get isWaiting(): boolean {
    return !this.isComplete && !this.#isEnding && !isTerminalPhase(this.written.phase)
  }

  #admit(): void {
    this.#isAdmitted = true
    const rejection = this.#host.admit(this.#pod, false)
    if (rejection === undefined) return
    const { verdict, note } = refusalOf(rejection)
    this.#isRejected = true
    this.#verdict = verdict
    this.#host.note(this.#pod, note)
  }

  /** What was asked for is granted at once: nothing has to be moved. */
  #resize({ spec }: Pod): void {
    const before = new Map(spec.containers.map(({ name, resources }) => [name, resources]))
    const containers = this.#pod.spec.containers
      .filter(({ name, resources }) => !semanticEqual(before.get(name), resources))
      .map(({ name, resources }) => ({ name, resources }))
    if (containers.length === 0) return
    const resizes = JSON.stringify({ containers, generation: this.#pod.metadata.generation })
    this.#host.note(this.#pod, resized('Started', resizes))
    this.#host.note(this.#pod, resized('Completed', resizes))
  }

  get #isEnding(): boolean {
    return this.#verdict !== undefined || this.#pod.metadata.deletionTimestamp !== undefined
  }

  /** All containers have ended, and none starts again. */
  get #isDone(): boolean {
    return this.#lives.some(({ run }) => run !== undefined) && this.#plan().isOver
  }

  #plan(): ReturnType<typeof planContainers> {
    return planContainers(this.#pod.spec, this.#lives, this.#isEnding)
  }

  /** Whether it has been active for longer than it may be. */
  #judge(nowMs: number): void {
    const { activeDeadlineSeconds } = this.#pod.spec
    if (activeDeadlineSeconds === undefined || this.#verdict !== undefined) return
    if (nowMs < this.#startedMs + activeDeadlineSeconds * 1000) return
    this.#verdict = { reason: 'DeadlineExceeded', message: DEADLINE_MESSAGE }
    this.#host.note(this.#pod, DEADLINE_EXCEEDED)
  }

  #advanceAll(nowMs: number): boolean {
    let hasChanged = false
    for (const life of this.#lives) {
      const notes = advance(life, nowMs)
      if (notes === undefined) continue
      hasChanged = true
      for (const note of notes) this.#note(life, note)
    }
    return hasChanged
  }

  /** Whether anything was done. */
  #act(nowMs: number): boolean {
    const plan = this.#plan()
    if (!this.#hasSandbox && plan.start.length > 0) this.#open()
    const started = plan.start.filter((life) => this.#start(life as ContainerLife, nowMs))
    const stopped = plan.stop.filter((life) => this.#stop(life as ContainerLife, nowMs))
    return started.length + stopped.length > 0
  }

  /** The sandbox: containers can be started, and the pod has an address. */
  #open(): void {
    this.#hasSandbox = true
    if (this.#pod.spec.hostNetwork !== true) this.#address ??= this.#host.takeAddress()
  }

  /** Whether it runs now. */
  #start(life: ContainerLife, nowMs: number): boolean {
    const ended = life.run?.end
    if (ended !== undefined && !this.#mayRestart(life, ended.finishedMs, nowMs)) return false
    if (life.configError !== undefined) {
      if (life.waiting?.message !== life.configError) this.#note(life, failed(life.configError))
      life.waiting = { reason: 'CreateContainerConfigError', message: life.configError }
      return false
    }
    if (life.startsMs === undefined) {
      const wishes = wishesOf(this.#pod, life.spec, this.#host.faults)
      if (wishes.pullError !== undefined) {
        this.#failPull(life, wishes.pullError, nowMs)
        return false
      }
      this.#pull(life, wishes.pullMs ?? 0, nowMs)
    }
    if ((life.startsMs ?? nowMs) > nowMs) return false
    if (ended !== undefined) life.restarts = nextBackOff(life.restarts, ended.finishedMs, nowMs)
    const conduct = conductOf(this.#pod, life, wishesOf(this.#pod, life.spec, this.#host.faults))
    begin(life, `simulated://${this.#host.random.bytes(32).toString('hex')}`, conduct, nowMs)
    this.#note(life, CREATED)
    this.#note(life, STARTED)
    return true
  }

  #mayRestart(life: ContainerLife, finishedMs: number, nowMs: number): boolean {
    if (life.startsMs !== undefined || nowMs >= retryMs(life.restarts, finishedMs)) return true
    if (life.restarts === undefined || life.waiting !== undefined || nowMs < finishedMs + NOTICE_MS) return false
    const pod = podText(this.#pod)
    const { name } = life.spec
    life.waiting = { reason: 'CrashLoopBackOff', message: crashLoopMessage(life.restarts, name, pod) }
    this.#note(life, crashBackOff(name, pod))
    return false
  }

  #pull(life: ContainerLife, pullMs: number, nowMs: number): void {
    const { image = '', imagePullPolicy } = life.spec
    const { images } = this.#host
    life.startsMs = nowMs
    life.imageId = imageIdOf(image)
    if (images.has(image) && imagePullPolicy !== 'Always') return this.#note(life, present(image))
    images.add(image)
    life.startsMs = nowMs + pullMs
    this.#note(life, pulling(image))
    this.#note(life, pulled(image, { tookMs: pullMs, withWaitingMs: pullMs, sizeBytes: imageSizeOf(image) }))
  }

  #failPull(life: ContainerLife, message: string, nowMs: number): void {
    const { image = '' } = life.spec
    const { failedPull } = life
    if (failedPull !== undefined && nowMs < retryMs(life.pulls, failedPull.atMs)) {
      if (life.waiting?.reason === 'ImagePullBackOff' || nowMs < failedPull.atMs + NOTICE_MS) return
      const text = `Back-off pulling image ${goQuote(image)}: ErrImagePull: ${failedPull.error}`
      life.waiting = { reason: 'ImagePullBackOff', message: text }
      this.#note(life, pullBackOff(image))
      this.#note(life, failed('ImagePullBackOff'))
      return
    }
    const error = message === '' ? `failed to pull and unpack image ${goQuote(image)}: not found` : message
    life.pulls = nextBackOff(life.pulls, nowMs, nowMs)
    life.failedPull = { atMs: nowMs, error }
    life.waiting = { reason: 'ErrImagePull', message: error }
    this.#note(life, pulling(image))
    this.#note(life, pullFailed(image, error))
    this.#note(life, failed('ErrImagePull'))
  }

  /** Whether it was told now. */
  #stop(life: ContainerLife, nowMs: number): boolean {
    if (life.stop !== undefined) return false
    this.#endingSinceMs ??= nowMs
    const { deletionGracePeriodSeconds } = this.#pod.metadata
    const { terminationGracePeriodSeconds = 30 } = this.#pod.spec
    const graceMs = (deletionGracePeriodSeconds ?? terminationGracePeriodSeconds) * 1000
    const leftMs = Math.max(graceMs - (nowMs - this.#endingSinceMs), MIN_GRACE_MS)
    const wishes = wishesOf(this.#pod, life.spec, this.#host.faults)
    const hookMs = (life.spec.lifecycle?.preStop?.sleep?.seconds ?? 0) * 1000
    tellToStop(life, leftMs, (wishes.stopMs ?? 0) + hookMs, nowMs)
    this.#note(life, stopping(life.spec.name))
    return true
  }

  #dueMs(nowMs: number): number {
    const { activeDeadlineSeconds = Infinity } = this.#pod.spec
    const deadlineMs = this.#verdict === undefined ? this.#startedMs + activeDeadlineSeconds * 1000 : Infinity
    const dues = this.#lives.map((life) => Math.min(dueMsOf(life), this.#isEnding ? Infinity : waitMsOf(life, nowMs)))
    return Math.min(deadlineMs, ...dues)
  }

  #note(life: ContainerLife, said: Note): void {
    this.#host.note(this.#pod, said, fieldPathOf(life))
  }
}

/** What is looked at: what the server keeps for itself weighs as much as the rest. */
function keptOf({ metadata, spec }: Pod): Pod {
  const { managedFields: _, ...kept } = metadata
  return { metadata: kept, spec, status: NO_STATUS }
}

const NO_STATUS: PodStatus = {}

/** When somebody who waits for another try is to be looked at again. */
function waitMsOf({ run, restarts, waiting, pulls, failedPull, startsMs }: ContainerLife, nowMs: number): number {
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

/** The moment when waiting is said, then the one when it is over. */
function next(failedMs: number, retryAtMs: number, nowMs: number): number {
  return failedMs + NOTICE_MS > nowMs ? failedMs + NOTICE_MS : retryAtMs
}
