/**
 * Keeps a worker alive: looks at it again and again, at once when one of the three has ended; after a failure later and
 * later. A process that lives but does not answer for its health is ended, so that the next look starts it. What it does can
 * be asked for at any time.
 */
import { createBackoff } from '#lib/backoff.ts'
import { sleep } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

import { attempt } from './attempt.ts'
import type { Host, ProcessName } from './host.ts'
import { describeOutcome, type Outcome } from './outcome.ts'
import { type NodeSettings, tidySettings } from './settings.ts'
import { timingsOf } from './timings.ts'

export interface SupervisorOptions {
  readonly host: Host
  readonly random: Random
  readonly settings: NodeSettings
  /** Where each says that it is well; those that are not here, or empty, are not asked. */
  readonly health: Readonly<Partial<Record<ProcessName, string>>>
  /** Told after each look that did something or failed, and of what was found sick. */
  readonly report: (event: SupervisorEvent) => void
}

export interface SupervisorEvent {
  /** As an Event of the node says it. */
  readonly reason: 'Started' | 'Unhealthy' | 'Retry' | 'Crash' | 'SettingsChanged'
  readonly message: string
}

export interface SupervisorStatus {
  readonly looks: number
  readonly last: Outcome | undefined
  /** How often each was started. */
  readonly starts: Readonly<Record<ProcessName, number>>
  /** How often in a row each did not say that it is well. */
  readonly sick: Readonly<Record<ProcessName, number>>
}

const LOOK_EVERY_MS = 10_000
/** A process may be busy; one that says nothing so often in a row is lost. */
const SICK_LOOKS = 3
const HEALTH_MS = 5000
const RETRY = { baseMs: 10_000, capMs: 120_000, jitter: 0.1 }
const NAMES: readonly ProcessName[] = ['kubelet', 'flanneld', 'kube-proxy']

export class Supervisor {
  readonly #options: SupervisorOptions
  #settings: NodeSettings
  readonly #restart = new Set<ProcessName>()
  readonly #status = {
    looks: 0,
    last: undefined as Outcome | undefined,
    starts: { kubelet: 0, flanneld: 0, 'kube-proxy': 0 },
    sick: { kubelet: 0, flanneld: 0, 'kube-proxy': 0 },
  }
  #wake = Promise.withResolvers<void>()

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#settings = tidySettings(options.settings)
  }

  get status(): SupervisorStatus {
    return this.#status
  }

  /** The node is to be something else from now on: what runs with other flags than it would be given now is started anew. */
  change(settings: NodeSettings): void {
    const next = tidySettings(settings)
    const names = changedProcesses(this.#settings, next)
    this.#settings = next
    if (names.length > 0) this.restart(names)
  }

  /** When certificates have changed, say. */
  restart(names: readonly ProcessName[]): void {
    for (const name of names) this.#restart.add(name)
    this.#options.report({ reason: 'SettingsChanged', message: `${names.join(', ')} will be restarted` })
    this.wake()
  }

  /** Something has happened: the next look is now. */
  wake(): void {
    this.#wake.resolve()
  }

  async run(signal: AbortSignal): Promise<void> {
    const { host, random } = this.#options
    const backoff = createBackoff(random, RETRY)
    while (!signal.aborted) {
      this.#wake = Promise.withResolvers()
      const outcome = await this.look(signal)
      if (outcome.kind === 'ok') backoff.reset()
      const waited = new AbortController()
      const rest = sleep(
        host.clock,
        outcome.kind === 'ok' ? LOOK_EVERY_MS : backoff.next(),
        AbortSignal.any([signal, waited.signal]),
      )
      // Whoever wakes it after a failure does so for a reason: another plan, another death.
      await Promise.race([rest.catch(() => undefined), this.#wake.promise])
      waited.abort()
    }
  }

  /** Once. Rejects when the signal is aborted meanwhile. */
  async look(signal: AbortSignal): Promise<Outcome> {
    const { host, report } = this.#options
    const { layout } = host
    const outcome =
      (await this.#endOld()) ??
      (await attempt({ host, layout, settings: this.#settings, timings: timingsOf(host), signal }))
    this.#status.looks++
    this.#status.last = outcome
    const message = describeOutcome(outcome)
    if (outcome.kind === 'retry') report({ reason: 'Retry', message })
    if (outcome.kind === 'crash') report({ reason: 'Crash', message })
    if (outcome.kind !== 'ok' || outcome.started.length === 0) return outcome
    for (const name of NAMES) if (outcome.started.includes(name)) this.#status.starts[name]++
    report({ reason: 'Started', message })
    return outcome
  }

  /** Those that are to be started anew, and those that are not well. A process that does not end is tried again later. */
  async #endOld(): Promise<Outcome | undefined> {
    try {
      for (const name of this.#restart) {
        await this.#options.host.processes.kill(name)
        this.#restart.delete(name)
      }
      await this.#endSick()
      return undefined
    } catch (error) {
      return { kind: 'retry', message: (error as Error).message }
    }
  }

  async #endSick(): Promise<void> {
    const { host, health, report } = this.#options
    for (const name of NAMES) {
      const url = health[name]
      const lives = url !== undefined && url !== '' && (await host.processes.find(name)).length > 0
      const isWell =
        !lives ||
        (await host.web.get(url, {}, HEALTH_MS).then(
          () => true,
          () => false,
        ))
      this.#status.sick[name] = isWell ? 0 : this.#status.sick[name] + 1
      if (this.#status.sick[name] < SICK_LOOKS) continue
      this.#status.sick[name] = 0
      report({
        reason: 'Unhealthy',
        message: `${name} has not said that it is well ${SICK_LOOKS} times in a row and is ended`,
      })
      await host.processes.kill(name)
    }
  }
}

/** Of a node that is to be something else: who would be started with other flags or files. */
export function changedProcesses(before: NodeSettings, after: NodeSettings): ProcessName[] {
  const differs = (...keys: readonly (keyof NodeSettings)[]): boolean =>
    keys.some((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]))
  const isNetwork = differs('clusterCidr', 'cniComponent', 'cniMode', 'vni', 'port', 'nodeIp', 'nodeName')
  if (isNetwork) return [...NAMES]
  const isKubelet = differs(
    'kubeletOptions',
    'clusterDomain',
    'serviceCidr',
    'dnsServiceIp',
    'cloudProvider',
    'cloudConfig',
    'registryConfig',
  )
  return [
    ...(isKubelet ? (['kubelet'] as const) : []),
    ...(differs('kubeProxyOptions') ? (['kube-proxy'] as const) : []),
  ]
}
