/** The start of a pod's containers: volumes, a sandbox, and each container with what it wants done after its start. */
import type { Pod } from '#apis/core/v1.ts'
import { exponentialDelayMs, type Growth, jitteredMs } from '#lib/backoff.ts'

import { nextBackOff } from '../back-off.ts'
import { type ContainerRecord, fieldPathOf, lastEndOf, TYPES } from '../container-runs.ts'
import { messageText } from '../cri/call-text.ts'
import { crashBackOff, type Note, podText } from '../kubelet-notes.ts'
import type { PodStartup } from '../metrics/pod-startup.ts'
import { type Place, sayStartError, startContainer } from './container-starter.ts'
import { runHook } from './hooks.ts'
import type { PodEnder } from './pod-ender.ts'
import type { PodHost } from './pod-host.ts'
import { targetOf } from './pod-probes.ts'
import type { RecordKeeper } from './record-keeper.ts'
import { isHeld, RETRY_MS, sayHeld } from './restart-wait.ts'
import type { SandboxKeeper } from './sandbox-keeper.ts'
import { StartError } from './start-error.ts'

export interface PodStarterOptions {
  readonly host: PodHost
  readonly pod: () => Pod
  readonly keeper: RecordKeeper
  readonly sandboxes: SandboxKeeper
  readonly ender: PodEnder
  readonly startup: PodStartup
  /** The pod is to end: nothing is waited for any more. */
  readonly signal: AbortSignal
  /** Brings what is known to what the runtime holds. */
  readonly look: () => Promise<void>
  /** A sandbox has been made, a container has been started. */
  readonly opened: () => void
  readonly started: () => void
}

/**
 * What a volume is made of often comes a moment after its pod. The first tries are upstream's; its later ones are up to two minutes
 * apart, here never more than those of anything else.
 */
const BRING_AGAIN: Growth = { baseMs: 500, capMs: RETRY_MS }

export class PodStarter {
  readonly #options: PodStarterOptions
  #volumes: Place['volumes'] = new Map()
  /** How often in a row volumes could not be brought. */
  #bringFailures = 0

  constructor(options: PodStarterOptions) {
    this.#options = options
  }

  /** How many were started; undefined when there was no place for them. */
  async start(records: readonly ContainerRecord[]): Promise<number | undefined> {
    if (!(await this.bringVolumes()) || !(await this.#prepare()) || !(await this.#open())) return undefined
    let count = 0
    for (const record of records) if (await this.#start(record)) count++
    return count
  }

  /** When what kept containers from being started is tried again. */
  get retryAtMs(): number {
    const { clock, random } = this.#options.host
    const failures = this.#bringFailures
    const delayMs = failures === 0 ? RETRY_MS : exponentialDelayMs(BRING_AGAIN, failures - 1)
    return clock.now() + jitteredMs(random, delayMs, delayMs === RETRY_MS ? 0.5 : 0)
  }

  /** Whether all are there, as the API has them now. */
  async bringVolumes(): Promise<boolean> {
    const { host, pod, signal } = this.#options
    const brought = await host.volumes.bring(pod(), signal)
    if ('mounts' in brought) {
      this.#volumes = brought.mounts
      this.#bringFailures = 0
      return true
    }
    this.#bringFailures++
    for (const message of brought.failures) host.note(pod(), { type: 'Warning', reason: 'FailedMount', message })
    return false
  }

  /** Whether drivers have made what the pod claims. */
  async #prepare(): Promise<boolean> {
    const { host, pod } = this.#options
    try {
      await host.grants.prepare(pod())
      return true
    } catch (error) {
      const message = `Failed to prepare dynamic resources: ${messageText(error)}`
      host.note(pod(), { type: 'Warning', reason: 'FailedPrepareDynamicResources', message })
      return false
    }
  }

  async #open(): Promise<boolean> {
    const { sandboxes, pod, signal, opened } = this.#options
    if (sandboxes.current !== undefined) return true
    if (!(await this.#makeCgroup())) return false
    if (!(await sandboxes.make(pod(), signal))) return false
    opened()
    return true
  }

  async #makeCgroup(): Promise<boolean> {
    const { host, pod } = this.#options
    try {
      await host.cgroups.ensure(pod(), host.grants.hasOwnCpus(pod().metadata.uid ?? ''))
      return true
    } catch (error) {
      const message = `unable to ensure pod container exists: ${messageText(error)}`
      host.note(pod(), { type: 'Warning', reason: 'FailedCreatePodContainer', message })
      return false
    }
  }

  /** Whether it runs now. */
  async #start(record: ContainerRecord): Promise<boolean> {
    const { host, pod, keeper, sandboxes, signal, look, started, startup } = this.#options
    const ended = lastEndOf(record)
    const sandbox = sandboxes.current
    if (sandbox === undefined || (ended !== undefined && !this.#mayRestart(record))) return false
    const place: Place = {
      pod: pod(),
      records: keeper.records,
      sandboxId: sandbox.id,
      sandboxConfig: sandbox.config,
      podIps: sandbox.ips,
      volumes: this.#volumes,
      signal,
      pulled: (span) => startup.pulled(span),
    }
    const { resources } = record.spec
    const type = TYPES[record.role]
    host.meters.family('kubelet_started_containers_total').labels(type).inc()
    try {
      const id = await startContainer(host, place, record)
      if (resources !== undefined) record.actual = resources
      if (ended !== undefined)
        record.restarts = nextBackOff(record.restarts, ended.finishedMs, host.clock.now(), host.facts.maxRestartMs)
      await keeper.began(record, id)
      started()
      await this.#afterStart(record, id)
      await keeper.sweep(pod(), record)
      return true
    } catch (error) {
      if (!(error instanceof StartError)) throw error
      host.meters.family('kubelet_started_containers_errors_total').labels(type, error.reason).inc()
      sayStartError(host, pod(), record, error)
      await host.held.relist()
      await look()
      record.waiting = { reason: error.reason, message: error.message }
      return false
    }
  }

  async #afterStart(record: ContainerRecord, id: string): Promise<void> {
    const { host, pod, sandboxes, ender, signal } = this.#options
    const { postStart } = record.spec.lifecycle ?? {}
    if (postStart === undefined) return
    try {
      const target = targetOf(host, pod(), { record, containerId: id, ips: sandboxes.current?.ips ?? [] })
      await runHook(host, postStart, target, { signal })
    } catch (error) {
      if (signal.aborted) throw error
      const note: Note = { type: 'Warning', reason: 'FailedPostStartHook', message: 'PostStartHook failed' }
      host.note(pod(), note, fieldPathOf(record))
      await ender.end(record, { type: 'Normal', reason: 'Killing', message: 'FailedPostStartHook' })
      throw new StartError('PostStartHookError', 'PostStartHook failed')
    }
  }

  #mayRestart(record: ContainerRecord): boolean {
    const { host, pod } = this.#options
    const nowMs = host.clock.now()
    if (!isHeld(record, nowMs)) return true
    const text = podText(pod())
    if (sayHeld(record, text, nowMs)) host.note(pod(), crashBackOff(record.spec.name, text), fieldPathOf(record))
    return false
  }
}
