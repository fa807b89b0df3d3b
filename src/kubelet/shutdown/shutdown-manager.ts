/**
 * Graceful node shutdown: stops pods before the machine shuts down, lower priorities first, within the configured
 * time. After a cancelled shutdown new pods are admitted again; stopped pods stay stopped.
 */
import type { Pod } from '#apis/core/v1.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Registry } from '#lib/metrics/metrics.ts'

import { type EventSpec, NODE_SHUTDOWN, NODE_SHUTDOWN_CANCELLED } from '../pod/events.ts'
import { graceOf, groupsOf, secondsOf, type ShutdownGroup, type ShutdownPeriod } from './shutdown-groups.ts'

/** Delays the shutdown until it is released. */
export interface ShutdownLock {
  release(): Promise<void>
}

export interface ShutdownWatch {
  /** Resolves when the watch has ended. */
  readonly closed: Promise<void>
  lock(): Promise<ShutdownLock>
  close(): void
}

/** Source of shutdown signals. */
export interface ShutdownSource {
  /** `wantedSeconds` is the delay that locks need. */
  watch(wantedSeconds: number, changed: (isShuttingDown: boolean) => void): Promise<ShutdownWatch>
}

export interface ShutdownOptions {
  readonly source: ShutdownSource
  readonly periods: readonly ShutdownPeriod[]
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  readonly registry: Registry
  /** Saves the start and end of the last shutdown as JSON. */
  readonly save: (state: string) => Promise<void>
  readonly pods: () => readonly Pod[]
  /** Resolves when the pod's containers have ended and its volumes are unmounted. */
  readonly end: (pod: Pod, graceSeconds: number) => Promise<void>
  readonly changed: (isShuttingDown: boolean) => void
  readonly recordEvent: (event: EventSpec) => void
}

/** Delay before the watch is restarted. */
const RETRY_MS = 1000

export class ShutdownManager {
  readonly #options: ShutdownOptions
  #lock: ShutdownLock | undefined
  /** Serializes events: a cancellation is handled after the shutdown before it. */
  #queue: Promise<void> = Promise.resolve()
  readonly #times: { startMs: number; endMs: number } = { startMs: 0, endMs: 0 }

  constructor(options: ShutdownOptions) {
    this.#options = options
    const { registry } = options
    const gauge = { type: 'gauge', stability: 'ALPHA' } as const
    for (const [name, help, field] of FAMILIES) {
      registry.callback({ ...gauge, name, help, collect: (emit) => emit(Math.floor(this.#times[field] / 1000)) })
    }
  }

  /** Runs until the signal is aborted. */
  async run(): Promise<void> {
    const { log, clock, signal } = this.#options
    log.info('Creating node shutdown manager', { shutdownGracePeriodByPodPriority: this.#options.periods })
    while (!signal.aborted) {
      try {
        await this.#listen()
        if (!signal.aborted) log.v(1)?.info('Restarting watch for node shutdown events')
      } catch (error) {
        if (!signal.aborted) log.error(error, 'Unable to watch the node for shutdown events')
      }
      await sleep(clock, RETRY_MS, signal, { background: true }).catch(() => undefined)
    }
  }

  /** Resolves when the watch has ended. */
  async #listen(): Promise<void> {
    const { source, periods, signal } = this.#options
    const watch = await source.watch(secondsOf(periods), (isShuttingDown) => {
      this.#queue = this.#queue.then(() => this.#handleEvent(watch, isShuttingDown))
    })
    const close = (): void => watch.close()
    signal.addEventListener('abort', close)
    try {
      if (signal.aborted) return
      await this.#takeLock(watch)
      await watch.closed
    } finally {
      signal.removeEventListener('abort', close)
      close()
      await this.#release()
    }
  }

  async #takeLock(watch: ShutdownWatch): Promise<void> {
    const fresh = await watch.lock()
    await this.#release()
    this.#lock = fresh
  }

  async #release(): Promise<void> {
    const lock = this.#lock
    this.#lock = undefined
    await lock?.release()
  }

  /** Never rejects, so that the lock is always released. */
  async #handleEvent(watch: ShutdownWatch, isShuttingDown: boolean): Promise<void> {
    const { log, recordEvent, changed } = this.#options
    log.v(1)?.info('Shutdown manager detected new shutdown event', { event: isShuttingDown ? 'shutdown' : 'cancelled' })
    recordEvent(isShuttingDown ? NODE_SHUTDOWN : NODE_SHUTDOWN_CANCELLED)
    changed(isShuttingDown)
    try {
      if (!isShuttingDown) return await this.#takeLock(watch)
      await this.#endAll()
    } catch (error) {
      log.error(error, 'Failed to handle a shutdown event')
    } finally {
      if (isShuttingDown) await this.#release()
    }
  }

  async #endAll(): Promise<void> {
    const { clock, periods, pods } = this.#options
    this.#times.startMs = clock.now()
    this.#times.endMs = 0
    await this.#save()
    for (const group of groupsOf(periods, pods())) if (group.pods.length > 0) await this.#endGroup(group)
    this.#times.endMs = clock.now()
    await this.#save()
  }

  /** Waits no longer than the group's grace period. */
  async #endGroup(group: ShutdownGroup): Promise<void> {
    const { clock, log, end } = this.#options
    const { shutdownGracePeriodSeconds: gracePeriod, priority } = group
    const all = Promise.all(
      group.pods.map((pod) =>
        end(pod, graceOf(pod, group)).catch((error: unknown) =>
          log.v(1)?.info('Shutdown manager failed killing pod', { pod: pod.metadata.name, err: String(error) }),
        ),
      ),
    )
    const done = new AbortController()
    const isInTime = await Promise.race([
      all.then(() => true),
      sleep(clock, gracePeriod * 1000, done.signal).then(
        () => false,
        () => true,
      ),
    ])
    done.abort()
    const message = isInTime
      ? 'Done waiting for all pods in group to terminate'
      : 'Shutdown manager pod killing time out'
    log.v(1)?.info(message, { gracePeriod, priority })
  }

  async #save(): Promise<void> {
    const { save, log } = this.#options
    const time = (ms: number): string => (ms === 0 ? NO_TIME : new Date(ms).toISOString())
    const state = { startTime: time(this.#times.startMs), endTime: time(this.#times.endMs) }
    await save(JSON.stringify(state)).catch((error: unknown) =>
      log.error(error, 'Failed to store graceful shutdown state'),
    )
  }
}

/** Go's zero time. */
const NO_TIME = '0001-01-01T00:00:00Z'

const FAMILIES = [
  [
    'kubelet_graceful_shutdown_start_time_seconds',
    'Last graceful shutdown start time since unix epoch in seconds',
    'startMs',
  ],
  [
    'kubelet_graceful_shutdown_end_time_seconds',
    'Last graceful shutdown end time since unix epoch in seconds',
    'endMs',
  ],
] as const
