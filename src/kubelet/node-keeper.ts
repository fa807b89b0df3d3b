/**
 * Keeps a node known to the API server for as long as its kubelet runs: registers it, looks after the runtime, reports and
 * renews at upstream's times. Whatever fails is tried again; nothing here ends the kubelet.
 */
import type { ContainerImage } from '#apis/core/v1.ts'
import { createBackoff } from '#lib/backoff.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'

import { withDeadlines } from './cri/deadlines.ts'
import type { RuntimeFeatures, RuntimeHandler, RuntimeStatus } from './cri/runtime-messages.ts'
import type { Runtime } from './cri/runtime.ts'
import type { NodeRegistration } from './node-registration.ts'
import type { Health } from './node-status.ts'
import { contactFaults } from './runtime-health.ts'

export interface NodeKeeperOptions {
  readonly registration: NodeRegistration
  readonly runtime: Runtime
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  /** Whether the node is made when it is not there. Default: true. */
  readonly registers?: boolean
  /** How often it is looked how things are, and how often the lease is renewed. Default: every ten seconds. */
  readonly lookMs?: number
  readonly renewMs?: number
  /** When the runtime last told what it holds. */
  readonly listedMs?: () => number | undefined
  /** How long the runtime has for an answer. Default: two minutes. */
  readonly callLimitMs?: number
  /** What else keeps the node from being ready. */
  readonly fault?: () => string | undefined
}

/** What the runtime last said. */
export interface RuntimeView {
  /** `containerd://2.4.2`. */
  readonly version: string
  readonly handlers: readonly RuntimeHandler[]
  readonly features: RuntimeFeatures | undefined
  readonly images: readonly ContainerImage[]
  /** Why no pod can be started, as it says itself; undefined when one can. */
  readonly fault: string | undefined
}

const PERIOD_MS = 10_000
/** Between questions to the runtime. */
const LOOK_MS = 5000
/** Until it is ready, so often is looked whether it is. */
const HURRY_MS = 100
const HURRIED_MS = 120_000
const REGISTER_BACKOFF = { baseMs: 100, factor: 2, capMs: 7000, jitter: 0 }
/** More names of one image are not told. */
const MAX_NAMES = 5

export class NodeKeeper {
  readonly #options: NodeKeeperOptions
  readonly #runtime: Runtime
  readonly #startedMs: number
  #view: RuntimeView = { version: '', handlers: [], features: undefined, images: [], fault: undefined }
  #answeredMs: number | undefined
  #hasDrivers = false
  #hurrying = new AbortController()

  constructor(options: NodeKeeperOptions) {
    this.#options = options
    this.#runtime = withDeadlines(options.runtime, options.clock, options.callLimitMs)
    this.#startedMs = options.clock.now()
  }

  get view(): RuntimeView {
    return this.#view
  }

  /** For the Node: what is wrong with it. */
  get ills(): readonly Health[] {
    const { clock, listedMs = () => clock.now() } = this.#options
    const contact = { startedMs: this.#startedMs, answeredMs: this.#answeredMs, listedMs: listedMs() }
    const faults = [
      ...contactFaults(contact, clock.now()),
      this.#view.fault,
      this.#hasDrivers ? undefined : 'CSINode is not yet initialized',
      this.#options.fault?.(),
    ].filter((fault) => fault !== undefined)
    if (faults.length === 0) return []
    const message = faults.length === 1 ? (faults[0] ?? '') : `[${faults.join(', ')}]`
    return [{ type: 'Ready', status: 'False', reason: 'KubeletNotReady', message }]
  }

  /** Asks the runtime how it is. One that does not answer is believed for a while what it said last. */
  async #look(): Promise<void> {
    const runtime = this.#runtime
    try {
      const [version, status, { images }] = await Promise.all([
        runtime.version({}),
        runtime.status({}),
        runtime.listImages({}),
      ])
      this.#view = {
        version: `${version.runtimeName}://${plainVersion(version.runtimeVersion)}`,
        handlers: status.runtimeHandlers,
        features: status.features,
        images: images
          .map(({ repoDigests, repoTags, size }) => ({
            names: [...repoDigests, ...repoTags].slice(0, MAX_NAMES),
            sizeBytes: Number(size),
          }))
          .sort((a, b) => b.sizeBytes - a.sizeBytes),
        fault: faultOf(status.status),
      }
      if (isWell(status.status, 'RuntimeReady')) this.#answeredMs = this.#options.clock.now()
    } catch (error) {
      if (!this.#options.signal.aborted) this.#options.log.error(error, 'Container runtime sanity check failed')
    }
  }

  /** Resolves when the node is registered; goes on until the signal is aborted. */
  async start(): Promise<void> {
    const { registration, registers = true, lookMs, renewMs } = this.#options
    await this.#look()
    if (registers) await this.#register()
    void this.#run('look', LOOK_MS, () => this.#look())
    void this.#run('report', lookMs, () => this.#report())
    void this.#run('renew', renewMs, () => registration.renew())
  }

  /** Until it is, or nobody wants it any more. */
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
    const { registration, clock, signal } = this.#options
    this.#hurrying = new AbortController()
    if (!this.#hasDrivers) {
      await registration.describeDrivers()
      this.#hasDrivers = true
    }
    await registration.report()
    // For as long as a node that has just begun may take.
    const isNew = (): boolean => clock.now() - this.#startedMs < HURRIED_MS
    while (!registration.isReady && isNew() && !signal.aborted) {
      await sleep(clock, HURRY_MS, signal)
      if (this.#answeredMs === undefined || this.#view.fault !== undefined) await this.#look()
      if (this.ills.length === 0) await registration.report()
    }
  }

  /** Something of the node has changed that others wait for: it is reported now. */
  hurry(): void {
    this.#hurrying.abort()
  }

  async #run(what: string, periodMs = PERIOD_MS, task: () => Promise<void>): Promise<void> {
    const { clock, log, signal } = this.#options
    while (!signal.aborted) {
      await task().catch((error: unknown) => {
        if (!signal.aborted) log.error(error, 'The node could not be kept up to date', { what })
      })
      const waking = what === 'report' ? AbortSignal.any([signal, this.#hurrying.signal]) : signal
      await sleep(clock, periodMs, waking).catch(() => undefined)
    }
  }
}

const SEMANTIC = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/

/** Without what distributions put behind it, as upstream reads it. Pure. */
export function plainVersion(text: string): string {
  const version = text.replace(/^v/, '')
  return SEMANTIC.test(version) ? version : (/^\d+(?:\.\d+)+/.exec(version)?.[0] ?? version)
}

/** Pure. In upstream's words. */
export function faultOf(status: RuntimeStatus | undefined): string | undefined {
  const conditions = status?.conditions ?? []
  const bad = (type: string): string | undefined => {
    const found = conditions.find((condition) => condition.type === type)
    if (isWell(status, type)) return undefined
    return `${type}=false reason:${found?.reason ?? ''} message:${found?.message ?? ''}`
  }
  const [runtime, network] = [bad('RuntimeReady'), bad('NetworkReady')]
  if (runtime !== undefined) return `container runtime not ready: ${runtime}`
  return network === undefined ? undefined : `container runtime network not ready: ${network}`
}

function isWell(status: RuntimeStatus | undefined, type: string): boolean {
  return status?.conditions.some((condition) => condition.type === type && condition.status) ?? false
}
