/**
 * Keeps the Node object and its lease current while the kubelet runs. It registers the node, checks the runtime,
 * reports status and renews the lease at upstream's intervals. Every failure is retried; none ends the kubelet.
 */
import { createBackoff } from '#lib/backoff.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'

import type { NodeHealth } from './node-health.ts'
import type { NodeRegistration } from './node-registration.ts'
import type { NodeState } from './node-state.ts'

export interface NodeStatusLoopOptions {
  readonly state: NodeState
  readonly health: NodeHealth
  readonly registration: NodeRegistration
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  /** Whether to create a missing Node. Default: true. */
  readonly registers?: boolean | undefined
  /** Intervals of status updates and of lease renewals. Default: ten seconds. */
  readonly statusUpdateMs?: number | undefined
  readonly renewMs?: number | undefined
}

const REPORT = 'report status'
const PERIOD_MS = 10_000
/** Interval of runtime checks. */
const RUNTIME_CHECK_MS = 5000
/** Interval of checks until a starting node is ready. */
const READY_CHECK_MS = 100
const STARTUP_MS = 120_000
const REGISTER_BACKOFF = { baseMs: 100, factor: 2, capMs: 7000, jitter: 0 }
export class NodeStatusLoop {
  readonly #options: NodeStatusLoopOptions
  readonly #startedMs: number
  #reportRequest = new AbortController().signal

  constructor(options: NodeStatusLoopOptions) {
    this.#options = options
    this.#startedMs = options.clock.now()
  }

  /** Resolves when the node is registered; continues until the signal is aborted. */
  async start(): Promise<void> {
    const { registration, health, registers = true, statusUpdateMs, renewMs } = this.#options
    await health.checkRuntime()
    if (registers) await this.#register()
    void this.#run('check runtime', RUNTIME_CHECK_MS, () => health.checkRuntime())
    void this.#run(REPORT, statusUpdateMs, () => this.#report())
    void this.#run('renew lease', renewMs, () => registration.renew())
  }

  /** Retries until the node is registered or the signal is aborted. */
  async #register(): Promise<void> {
    const { registration, clock, random, log, signal } = this.#options
    const backoff = createBackoff(random, REGISTER_BACKOFF)
    for (;;) {
      try {
        await registration.register()
        return
      } catch (error) {
        if (signal.aborted) return
        log.error(error, 'Unable to register node with API server')
        await sleep(clock, backoff.next(), signal)
      }
    }
  }

  async #report(): Promise<void> {
    const { registration, state, health, clock, signal } = this.#options
    this.#reportRequest = state.nextReportRequest()
    if (!health.hasCsiNode) {
      await registration.createCsiNode()
      health.hasCsiNode = true
    }
    await registration.report()
    // A starting node is checked often for a limited time.
    const isNew = (): boolean => clock.now() - this.#startedMs < STARTUP_MS
    while (!registration.isReady && isNew() && !signal.aborted) {
      await sleep(clock, READY_CHECK_MS, signal)
      if (health.lacksRuntime) await health.checkRuntime()
      if (health.isReady) await registration.report()
    }
  }

  async #run(what: string, periodMs = PERIOD_MS, task: () => Promise<void>): Promise<void> {
    const { clock, log, signal } = this.#options
    while (!signal.aborted) {
      await task().catch((error: unknown) => {
        if (!signal.aborted) log.error(error, 'Failed to update node', { what })
      })
      const waking = what === REPORT ? AbortSignal.any([signal, this.#reportRequest]) : signal
      await sleep(clock, periodMs, waking).catch(() => undefined)
    }
  }
}
