/**
 * One pod, from being bound to being gone. Whatever happens wakes it; it then looks at what the runtime holds, decides by
 * the rules that simulated nodes decide by, and acts. One turn at a time: what comes meanwhile is looked at in the next.
 */
import type { Pod, PodCondition, PodStatus } from '#apis/core/v1.ts'
import { epochMsOf, microTimeOf, timeOf } from '#meta/time.ts'
import { isTerminalPhase } from '#model/pods.ts'

import { planContainers } from '../container-plan.ts'
import { type ContainerRecord, isRunning } from '../container-runs.ts'
import { DEADLINE_EXCEEDED, DEADLINE_MESSAGE, podText, SANDBOX_CHANGED, stopping } from '../kubelet-notes.ts'
import { PodStartup } from '../metrics/pod-startup.ts'
import { refusalOf } from '../pod-admission.ts'
import type { PendingResize } from '../pod-allocation.ts'
import { podStatusOf, type PodView, rejectedStatusOf } from '../pod-status.ts'
import { KILLING, removalOrder, restartsAll, startAnew } from '../restart-all.ts'
import { comesBack, leaveSandbox } from '../sandbox-change.ts'
import { removeAll, stopSandboxes } from './leftovers.ts'
import { PodDeadline } from './pod-deadline.ts'
import { PodEnder } from './pod-ender.ts'
import { enterNode } from './pod-entry.ts'
import type { PodHost } from './pod-host.ts'
import { PodProbes, targetOf } from './pod-probes.ts'
import { PodResizer } from './pod-resizer.ts'
import { PodStarter } from './pod-starter.ts'
import { PodTurns } from './pod-turns.ts'
import { RecordKeeper } from './record-keeper.ts'
import { waitMsOf } from './restart-wait.ts'
import { SandboxKeeper } from './sandbox-keeper.ts'
import { type StatusDoor, statusWriterOf } from './status-writer.ts'

export class PodWorker {
  readonly #host: PodHost
  /** As the API server has it. */
  #desired: Pod
  /** With what is granted to its containers. */
  #pod: Pod
  readonly writer: StatusDoor
  readonly #startedMs: number
  readonly #startup: PodStartup
  readonly #seenMs: number
  readonly #turns: PodTurns
  readonly #deadline: PodDeadline
  #isAdmitted: boolean
  #isRejected = false
  #isDeleted = false
  #isOver = false
  #isRestartingAll = false
  #verdict: PodView['verdict']
  /** Why it was ended for others. */
  #disruption: PodCondition | undefined
  #hasEnded = false
  readonly #ended = Promise.withResolvers<void>()
  readonly #emptied = Promise.withResolvers<void>()
  readonly #sandboxes: SandboxKeeper
  readonly #probes: PodProbes
  /** Its address is told from the moment on that a container of it runs. */
  #shownIps: readonly string[] = []
  readonly #keeper: RecordKeeper
  readonly #ender: PodEnder
  readonly #starter: PodStarter
  readonly #resizer: PodResizer
  /** Aborted when nothing is to be brought up any more. */
  readonly #bringing = new AbortController()

  constructor(pod: Pod, host: PodHost) {
    this.#host = host
    this.#desired = pod
    this.#resizer = new PodResizer(host, pod, (record, doom) => this.#ender.doom(record, doom))
    this.#pod = this.#resizer.granted(pod)
    this.#startup = new PodStartup(host.meters, pod)
    this.#keeper = new RecordKeeper(this.#pod, host, (tookMs) => this.#startup.initialised(tookMs))
    const nowMs = host.clock.now()
    this.#seenMs = nowMs
    const { startTime } = pod.status
    this.#startedMs = startTime === undefined ? nowMs : epochMsOf(startTime)
    this.#isAdmitted = startTime !== undefined
    // Of one that has ended, nobody else knows it any more.
    if (isTerminalPhase(pod.status.phase)) this.#shownIps = (pod.status.podIPs ?? []).map(({ ip }) => ip)
    if (startTime !== undefined) host.admit(this.#pod, true)
    this.#sandboxes = new SandboxKeeper(host, microTimeOf(nowMs))
    this.#probes = new PodProbes({
      host,
      pod: () => this.#pod,
      target: (record, id) => targetOf(this.#host, this.#pod, { record, containerId: id, ips: this.#ips }),
      doom: (record, doom) => this.#ender.doom(record, doom),
      changed: () => this.#probed(),
    })
    this.#ender = new PodEnder({
      host,
      pod: () => this.#pod,
      records: () => this.records,
      ips: () => this.#ips,
      isDeleted: () => this.#isDeleted,
      ending: (id) => this.#probes.endLivenessAndStartup([id]),
      ended: (record, id) => this.#keeper.observe(record, id),
    })
    this.#starter = new PodStarter({
      host,
      pod: () => this.#pod,
      keeper: this.#keeper,
      sandboxes: this.#sandboxes,
      ender: this.#ender,
      startup: this.#startup,
      signal: this.#bringing.signal,
      look: () => this.#look(),
      opened: () => this.#publish(),
      started: () => this.#show(),
    })
    this.writer = host.writerFor?.(pod) ?? statusWriterOf(host, pod)
    this.#turns = this.#openTurns()
    this.#deadline = this.#openDeadline()
    this.#deadline.heed(this.#pod)
  }

  #openTurns(): PodTurns {
    const host = this.#host
    return new PodTurns({
      host,
      turn: () => this.#turn(),
      isOver: () => this.#isOver,
      isGivenUp: () => this.#bringing.signal.aborted,
      failed: (error) => host.log.error(error, 'Error syncing pod, skipping', { pod: podText(this.#pod) }),
    })
  }

  #openDeadline(): PodDeadline {
    const passed = (): void => {
      this.#judge()
      this.wake()
    }
    return new PodDeadline({ clock: this.#host.clock, startedMs: this.#startedMs, passed })
  }

  get pod(): Pod {
    return this.#pod
  }

  get records(): readonly ContainerRecord[] {
    return this.#keeper.records
  }

  /** All its containers have ended for good. */
  get isFinished(): boolean {
    return this.#hasEnded || (isTerminalPhase(this.writer.said.phase) && !this.records.some(isRunning))
  }

  /** Resolves when it has ended and nothing is mounted for it any more. */
  get emptied(): Promise<void> {
    return this.#emptied.promise
  }

  get sandboxId(): string | undefined {
    return this.#sandboxes.current?.id
  }

  learn(pod: Pod): void {
    const before = this.#pod.metadata.deletionGracePeriodSeconds ?? Infinity
    this.#desired = pod
    this.#startup.heard(pod, this.#host.clock.now())
    this.#turns.noteUpdate()
    this.#grant()
    this.writer.hear(pod.status.conditions)
    const grace = pod.metadata.deletionGracePeriodSeconds ?? Infinity
    if (grace < before) this.#ender.hurry(grace)
    this.#deadline.heed(this.#pod)
    this.wake()
  }

  #grant(): void {
    this.#pod = this.#resizer.granted(this.#desired)
    this.#keeper.learn(this.#pod.spec)
  }

  /** A resize that was put off. */
  get waitingResize(): PendingResize | undefined {
    return this.#isEnding ? undefined : this.#resizer.waitingOf(this.#desired)
  }

  retryResize(): void {
    if (!this.#resizer.consider(this.#desired)) return
    this.#grant()
    this.wake()
  }

  /** The API server does not have it any more. */
  forget(): void {
    this.#isDeleted = true
    this.writer.isGone = true
    // Whoever takes its place need not wait for it.
    this.#host.release(this.#pod)
    this.#ender.hurry(0)
    this.wake()
  }

  wake(): void {
    if (this.#isEnding) this.#bringing.abort()
    this.#turns.wake()
  }

  stop(): void {
    this.#turns.stop()
    this.#deadline.cancel()
    this.#bringing.abort()
    this.#probes.end()
  }

  /** Returns when there is something to do again. */
  async #turn(): Promise<number> {
    await this.#look()
    if (!this.#isAdmitted) await this.#admit()
    this.#judge()
    if (this.#isRejected && !this.#isLeaving) {
      this.#publish()
      return Infinity
    }
    if (!this.#isEnding && this.#resizer.consider(this.#desired)) this.#grant()
    if (!this.#isEnding && restartsAll(this.records)) await this.#restartAll()
    const plan = this.#plan()
    if (this.#isEnding || plan.isOver || isTerminalPhase(this.writer.said.phase)) return this.#finish()
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

  async #admit(): Promise<void> {
    this.#isAdmitted = true
    const rejection = await enterNode(this.#host, this.#pod)
    if (rejection === undefined) return this.#resizer.admitted(this.#pod)
    const { verdict, note } = refusalOf(rejection)
    this.#isRejected = true
    this.#verdict = verdict
    this.#host.note(this.#pod, note)
  }

  /** It fails as a whole, within so many seconds. Resolves when its containers have ended. */
  end(verdict: NonNullable<PodView['verdict']>, graceSeconds: number, condition?: PodCondition): Promise<void> {
    if (this.#verdict === undefined && !this.#isLeaving) {
      this.#verdict = verdict
      this.#disruption = condition
    }
    this.#ender.limitGrace(graceSeconds)
    this.wake()
    return this.#ended.promise
  }

  #judge(): void {
    if (!this.#deadline.hasPassed || this.#verdict !== undefined || this.#isLeaving) return
    this.#verdict = { reason: 'DeadlineExceeded', message: DEADLINE_MESSAGE }
    this.#host.note(this.#pod, DEADLINE_EXCEEDED)
  }

  /** What a kubelet would say of it now. */
  status(hasSandbox: boolean = this.#sandboxes.current !== undefined): PodStatus {
    const { said } = this.writer
    const startTime = timeOf(this.#startedMs)
    if (this.#isRejected) return rejectedStatusOf(this.#pod, said, { startTime, verdict: this.#verdict })
    // A pod fails as a whole only when none of its containers runs any more.
    const hasEnded = !this.records.some(isRunning)
    const disruption = hasEnded && this.#disruption !== undefined ? [this.#disruption] : []
    const view: PodView = {
      records: this.records,
      hasSandbox,
      isEnding: this.#isEnding,
      hostIps: this.#host.facts.addresses,
      podIps: this.#shownIps,
      startTime,
      verdict: hasEnded ? this.#verdict : undefined,
      isRestartingAll: this.#isRestartingAll,
      conditions: [...this.#resizer.conditions, ...disruption],
    }
    return podStatusOf(this.#pod, said, view, this.#host.clock.now())
  }

  #publish(hasSandbox?: boolean): void {
    if (this.#isDeleted) return
    const status = this.status(hasSandbox)
    if (status.phase === 'Running') this.#startup.runs(this.#seenMs, this.#host.clock.now())
    this.writer.put(status)
  }

  /** The turn that ends a pod may take its whole grace period and publishes nothing meanwhile. */
  #probed(): void {
    if (this.#isEnding) this.#publish()
    this.wake()
  }

  /** Brings what is known to what the runtime holds. */
  async #look(): Promise<void> {
    await this.#sandboxes.adopt(this.#pod)
    await this.#keeper.look(this.#pod, this.sandboxId)
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
    await this.#leaveSandbox()
    this.#ender.doomChanged()
    await this.#resizer.actuate(this.#pod, this.records, this.sandboxId)
    await this.#ender.endDoomed()
    const plan = this.#plan()
    for (const record of plan.stop) await this.#ender.end(record, stopping(record.spec.name))
    if (plan.start.length > 0) {
      const count = await this.#starter.start(plan.start)
      if (count === undefined) return this.#starter.retryAtMs
      this.#probes.watch(this.records)
      if (count > 0 && this.#plan().start.some(({ run }) => run === undefined)) this.#turns.goOn()
    } else {
      // What is mounted follows the API while containers run.
      await this.#starter.bringVolumes()
    }
    this.#resizer.settle(this.#pod, this.records)
    this.#publish()
    return this.#dueMs()
  }

  /** Who was in a sandbox that has gone ends, and all begins anew, unless the pod is over with it. */
  async #leaveSandbox(): Promise<void> {
    const lost = this.#sandboxes.lost(this.#pod)
    if (lost === undefined) return
    const isAnew = comesBack(this.#pod.spec, this.records)
    if (isAnew) this.#host.note(this.#pod, SANDBOX_CHANGED)
    for (const record of this.records.filter(isRunning)) await this.#ender.end(record, stopping(record.spec.name))
    await this.#host.runtime.stopPodSandbox({ podSandboxId: lost })
    this.#sandboxes.leave(lost)
    this.#shownIps = []
    if (isAnew) leaveSandbox(this.#pod.spec, this.records)
  }

  /** As one of its containers asked for by how it ended. What fails is tried again: who asked is there until the last. */
  async #restartAll(): Promise<void> {
    this.#isRestartingAll = true
    this.#publish()
    const order = removalOrder(this.records)
    for (const record of order) {
      if (isRunning(record)) await this.#ender.end(record, KILLING, 0)
      await this.#keeper.remove(this.#pod, record)
    }
    startAnew(order, this.#host.clock.now())
    this.#isRestartingAll = false
  }

  /** Everything ends, is told, and is taken away. */
  async #finish(): Promise<number> {
    const { uid = '' } = this.#pod.metadata
    this.#probes.endLivenessAndStartup()
    if (this.#isLeaving && !isTerminalPhase(this.writer.said.phase)) this.#publish()
    await this.#ender.endAll()
    await stopSandboxes(this.#host, uid, this.sandboxId)
    await this.#host.cgroups.remove(this.#pod)
    this.#probes.end()
    this.#publish(false)
    this.#hasEnded = true
    this.#ended.resolve()
    await this.#host.volumes.leave(uid)
    this.#emptied.resolve()
    await this.#host.grants.release(uid)
    this.#host.release(this.#pod)
    await this.writer.settled()
    if (!this.#isLeaving) return Infinity
    if (!this.#isDeleted) await this.writer.remove()
    await removeAll(this.#host, uid, this.sandboxId)
    this.#host.puller.forget(this.#pod)
    this.#host.allocations.remove(uid)
    this.#isOver = true
    this.#deadline.cancel()
    this.#host.gone(uid)
    return Infinity
  }

  #dueMs(): number {
    const nowMs = this.#host.clock.now()
    return Math.min(
      this.#deadline.endMs,
      ...this.#plan().start.map((record) =>
        waitMsOf(record, this.#host.puller.retryAtMs(this.#pod, record.spec.image ?? ''), nowMs),
      ),
    )
  }
}
