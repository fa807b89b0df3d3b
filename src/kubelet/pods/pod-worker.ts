/**
 * One pod, from being bound to being gone. Whatever happens wakes it; it then looks at what the runtime holds, decides by
 * the rules that simulated nodes decide by, and acts. One turn at a time: what comes meanwhile is looked at in the next.
 */
import type { Pod, PodStatus } from '#apis/core/v1.ts'
import { jitteredMs } from '#lib/backoff.ts'
import type { Timer } from '#lib/clock.ts'
import { epochMsOf, microTimeOf, timeOf } from '#meta/time.ts'
import { isTerminalPhase } from '#model/pods.ts'

import { nextBackOff } from '../back-off.ts'
import { planContainers } from '../container-plan.ts'
import { type ContainerRecord, fieldPathOf, isRunning } from '../container-runs.ts'
import { crashBackOff, DEADLINE_EXCEEDED, DEADLINE_MESSAGE, type Note, podText, stopping } from '../kubelet-notes.ts'
import { refusalOf } from '../pod-admission.ts'
import { conditionsKnown } from '../pod-conditions.ts'
import { podStatusOf, type PodView } from '../pod-status.ts'
import { type Place, sayStartError, startContainer } from './container-starter.ts'
import { runHook } from './hooks.ts'
import { removeAll, stopSandboxes } from './leftovers.ts'
import { PodEnder } from './pod-ender.ts'
import type { PodHost } from './pod-host.ts'
import { PodProbes, targetOf } from './pod-probes.ts'
import { RecordKeeper } from './record-keeper.ts'
import { isHeld, RETRY_MS, sayHeld, waitMsOf } from './restart-wait.ts'
import { SandboxKeeper } from './sandbox-keeper.ts'
import { StartError } from './start-error.ts'
import { StatusWriter } from './status-writer.ts'

/** Between turns when nothing happens. */
const RESYNC_MS = 60_000

export class PodWorker {
  readonly #host: PodHost
  #pod: Pod
  readonly writer: StatusWriter
  readonly #startedMs: number
  #isAdmitted: boolean
  #isRejected = false
  #isDeleted = false
  #isOver = false
  #verdict: PodView['verdict']
  readonly #sandboxes: SandboxKeeper
  readonly #probes: PodProbes
  /** Its address is told from the moment on that a container of it runs. */
  #shownIps: readonly string[] = []
  #volumes: Place['volumes'] | undefined
  readonly #keeper: RecordKeeper
  readonly #ender: PodEnder
  #isBusy = false
  #isWoken = false
  #timer: Timer | undefined

  constructor(pod: Pod, host: PodHost) {
    this.#host = host
    this.#pod = pod
    this.#keeper = new RecordKeeper(pod, host)
    const nowMs = host.clock.now()
    const { startTime } = pod.status
    this.#startedMs = startTime === undefined ? nowMs : epochMsOf(startTime)
    this.#isAdmitted = startTime !== undefined
    if (startTime !== undefined) {
      host.admit(pod, true)
    }
    this.#sandboxes = new SandboxKeeper(host, microTimeOf(nowMs))
    this.#probes = new PodProbes({
      host,
      pod: () => this.#pod,
      target: (record, id) => targetOf(this.#host, this.#pod, { record, containerId: id, ips: this.#ips }),
      doom: (record, why) => this.#ender.doom(record, why),
      changed: () => this.wake(),
    })
    this.#ender = new PodEnder({
      host,
      pod: () => this.#pod,
      records: () => this.records,
      ips: () => this.#ips,
      isDeleted: () => this.#isDeleted,
      ending: (id) => this.#probes.tellEnding(id),
      ended: (record, id) => this.#keeper.observe(record, id),
    })
    const { client, random, signal } = host
    const onError = (error: unknown): void =>
      host.log.error(error, 'A status could not be written', { pod: podText(pod) })
    this.writer = new StatusWriter({ client, random, pod, signal, onError })
  }

  get pod(): Pod {
    return this.#pod
  }

  get records(): readonly ContainerRecord[] {
    return this.#keeper.records
  }

  get sandboxId(): string | undefined {
    return this.#sandboxes.current?.id
  }

  learn(pod: Pod): void {
    const before = this.#pod.metadata.deletionGracePeriodSeconds ?? Infinity
    this.#pod = pod
    this.#keeper.learn(pod.spec)
    this.writer.written = {
      ...this.writer.written,
      conditions: conditionsKnown(pod.status.conditions, this.writer.written.conditions),
    }
    const grace = pod.metadata.deletionGracePeriodSeconds ?? Infinity
    if (grace < before) this.#ender.hurry(grace)
    this.wake()
  }

  /** The API server does not have it any more. */
  forget(): void {
    this.#isDeleted = true
    this.writer.isGone = true
    this.#ender.hurry(0)
    this.wake()
  }

  wake(): void {
    this.#isWoken = true
    if (!this.#isBusy && !this.#isOver && !this.#host.signal.aborted) void this.#work()
  }

  stop(): void {
    this.#timer?.cancel()
    this.#probes.end()
  }

  async #work(): Promise<void> {
    this.#isBusy = true
    while (this.#isWoken && !this.#isOver && !this.#host.signal.aborted) {
      this.#isWoken = false
      this.#timer?.cancel()
      let dueMs: number
      try {
        dueMs = await this.#turn()
      } catch (error) {
        if (this.#host.signal.aborted) break
        this.#host.log.error(error, 'Error syncing pod, skipping', { pod: podText(this.#pod) })
        dueMs = this.#host.clock.now() + jitteredMs(this.#host.random, RETRY_MS, 0.5)
      }
      this.#schedule(dueMs)
    }
    this.#isBusy = false
  }

  #schedule(dueMs: number): void {
    if (this.#isOver || this.#host.signal.aborted) return
    const { clock, random } = this.#host
    const idleMs = jitteredMs(random, RESYNC_MS, 0.5)
    const delayMs = Math.min(Math.max(dueMs - clock.now(), 0), idleMs)
    this.#timer = clock.after(delayMs, () => this.wake(), { background: true })
  }

  /** Returns when there is something to do again. */
  async #turn(): Promise<number> {
    await this.#look()
    if (!this.#isAdmitted) this.#admit()
    this.#judge()
    if (this.#isRejected && !this.#isLeaving) {
      this.#publish()
      return Infinity
    }
    const plan = this.#plan()
    if (this.#isEnding || plan.isOver || isTerminalPhase(this.writer.written.phase)) return this.#finish()
    this.#publish()
    return this.#bringUp()
  }

  get #isLeaving(): boolean {
    return this.#isDeleted || this.#pod.metadata.deletionTimestamp !== undefined
  }

  get #isEnding(): boolean {
    return this.#verdict !== undefined || this.#isLeaving
  }

  #plan(): ReturnType<typeof planContainers> {
    return planContainers(this.#pod.spec, this.records, this.#isEnding)
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

  #judge(): void {
    const { activeDeadlineSeconds } = this.#pod.spec
    if (activeDeadlineSeconds === undefined || this.#verdict !== undefined || this.#isLeaving) return
    if (this.#host.clock.now() < this.#startedMs + activeDeadlineSeconds * 1000) return
    this.#verdict = { reason: 'DeadlineExceeded', message: DEADLINE_MESSAGE }
    this.#host.note(this.#pod, DEADLINE_EXCEEDED)
  }

  /** What a kubelet would say of it now. */
  status(hasSandbox: boolean = this.#sandboxes.current !== undefined): PodStatus {
    const { written } = this.writer
    if (this.#isRejected) {
      return { ...written, phase: 'Failed', ...this.#verdict, startTime: timeOf(this.#startedMs) }
    }
    const view: PodView = {
      records: this.records,
      hasSandbox,
      isEnding: this.#isEnding,
      hostIps: this.#host.facts.addresses,
      podIps: this.#shownIps,
      startTime: timeOf(this.#startedMs),
      verdict: this.#verdict,
    }
    return podStatusOf(this.#pod, written, view, this.#host.clock.now())
  }

  #publish(hasSandbox?: boolean): void {
    if (!this.#isDeleted) this.writer.put(this.status(hasSandbox))
  }

  /** Brings what is known to what the runtime holds. */
  async #look(): Promise<void> {
    await this.#sandboxes.adopt(this.#pod)
    await this.#keeper.look(this.#pod)
    this.#show()
    this.#probes.watch(this.records)
  }

  get #ips(): readonly string[] {
    return this.#sandboxes.current?.ips ?? []
  }

  #show(): void {
    const { current } = this.#sandboxes
    if (current !== undefined && this.records.some(isRunning)) this.#shownIps = current.ips
  }

  async #bringUp(): Promise<number> {
    await this.#ender.endDoomed()
    const plan = this.#plan()
    for (const record of plan.stop) await this.#ender.end(record, stopping(record.spec.name))
    if (plan.start.length > 0) {
      if (!(await this.#bringVolumes())) return this.#host.clock.now() + jitteredMs(this.#host.random, RETRY_MS, 0.5)
      if (!(await this.#open())) return this.#host.clock.now() + jitteredMs(this.#host.random, RETRY_MS, 0.5)
      const started = []
      for (const record of plan.start) if (await this.#start(record)) started.push(record)
      this.#probes.watch(this.records)
      this.#publish()
      if (started.length > 0) this.#isWoken ||= this.#plan().start.some(({ run }) => run === undefined)
    }
    return this.#dueMs()
  }

  /** Whether containers have a place: one that has gone is made anew, and who was in it ends. */
  async #open(): Promise<boolean> {
    const lost = this.#sandboxes.lost(this.#pod)
    if (lost === undefined && this.#sandboxes.current !== undefined) return true
    if (lost !== undefined) {
      this.#host.note(this.#pod, SANDBOX_CHANGED)
      for (const record of this.records.filter(isRunning)) {
        await this.#ender.end(record, stopping(record.spec.name))
      }
      await this.#host.runtime.stopPodSandbox({ podSandboxId: lost })
      this.#sandboxes.current = undefined
      this.#shownIps = []
    }
    if (!(await this.#sandboxes.make(this.#pod))) return false
    this.#publish()
    return true
  }

  async #bringVolumes(): Promise<boolean> {
    const brought = await this.#host.volumes.bring(this.#pod, this.#host.signal)
    if ('mounts' in brought) {
      this.#volumes = brought.mounts
      return true
    }
    for (const message of brought.failures)
      this.#host.note(this.#pod, { type: 'Warning', reason: 'FailedMount', message })
    return false
  }

  /** Whether it runs now. */
  async #start(record: ContainerRecord): Promise<boolean> {
    const ended = record.run?.end
    if (ended !== undefined && !this.#mayRestart(record)) return false
    const { clock } = this.#host
    const sandbox = this.#sandboxes.current
    if (sandbox === undefined) return false
    const place: Place = {
      pod: this.#pod,
      records: this.records,
      sandboxId: sandbox.id,
      sandboxConfig: sandbox.config,
      podIps: sandbox.ips,
      volumes: this.#volumes ?? new Map(),
    }
    try {
      const id = await startContainer(this.#host, place, record)
      if (ended !== undefined) record.restarts = nextBackOff(record.restarts, ended.finishedMs, clock.now())
      await this.#keeper.began(record, id)
      this.#show()
      await this.#afterStart(record, id)
      await this.#keeper.sweep(this.#pod, record)
      return true
    } catch (error) {
      if (!(error instanceof StartError)) throw error
      sayStartError(this.#host, this.#pod, record, error)
      await this.#host.held.relist()
      await this.#look()
      record.waiting = { reason: error.reason, message: error.message }
      return false
    }
  }

  async #afterStart(record: ContainerRecord, id: string): Promise<void> {
    const { postStart } = record.spec.lifecycle ?? {}
    if (postStart === undefined) return
    try {
      await runHook(this.#host, postStart, targetOf(this.#host, this.#pod, { record, containerId: id, ips: this.#ips }))
    } catch {
      const note: Note = { type: 'Warning', reason: 'FailedPostStartHook', message: 'PostStartHook failed' }
      this.#host.note(this.#pod, note, fieldPathOf(record))
      await this.#ender.end(record, { type: 'Normal', reason: 'Killing', message: 'FailedPostStartHook' })
      throw new StartError('PostStartHookError', 'PostStartHook failed')
    }
  }

  #mayRestart(record: ContainerRecord): boolean {
    const { clock } = this.#host
    if (!isHeld(record, clock.now())) return true
    const { name } = record.spec
    const pod = podText(this.#pod)
    if (sayHeld(record, pod, clock.now())) this.#host.note(this.#pod, crashBackOff(name, pod), fieldPathOf(record))
    return false
  }

  /** Everything ends, is told, and is taken away. */
  async #finish(): Promise<number> {
    const { volumes } = this.#host
    const { uid = '' } = this.#pod.metadata
    if (this.#isLeaving && !isTerminalPhase(this.writer.written.phase)) this.#publish()
    await this.#ender.endAll()
    await stopSandboxes(this.#host, uid, this.sandboxId)
    this.#probes.end()
    this.#publish(false)
    await volumes.leave(uid)
    this.#host.release(this.#pod)
    await this.writer.settled()
    if (!this.#isLeaving) return Infinity
    if (!this.#isDeleted) await this.writer.remove()
    await removeAll(this.#host, uid, this.sandboxId)
    this.#host.puller.forget(this.#pod)
    this.#isOver = true
    this.#host.gone(uid)
    return Infinity
  }

  #dueMs(): number {
    const { activeDeadlineSeconds = Infinity } = this.#pod.spec
    const deadlineMs = this.#startedMs + activeDeadlineSeconds * 1000
    const nowMs = this.#host.clock.now()
    return Math.min(
      deadlineMs,
      ...this.#plan().start.map((record) =>
        waitMsOf(record, this.#host.puller.retryAtMs(this.#pod, record.spec.image ?? ''), nowMs),
      ),
    )
  }
}

const SANDBOX_CHANGED: Note = {
  type: 'Normal',
  reason: 'SandboxChanged',
  message: 'Pod sandbox changed, it will be killed and re-created.',
}
