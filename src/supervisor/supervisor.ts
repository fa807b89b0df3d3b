/**
 * Keeps a worker alive: looks at it again and again, at once when one of the three has ended; after a failure later and
 * later. A process that lives but does not answer for its health is ended, so that the next look starts it. What it does can
 * be asked for at any time.
 */
import { createBackoff } from '#lib/backoff.ts'
import { sleep } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

import { attempt } from './attempt.ts'
import type { Host } from './host.ts'
import { describeOutcome, type Outcome } from './outcome.ts'
import { perProcess, PROCESS_NAMES, type ProcessName } from './process-names.ts'
import { type NodeSettings, tidySettings, wantedProcesses } from './settings.ts'
import { type Health, isLost, nextHealth, SICK_LOOKS } from './sickness.ts'
import { timingsOf } from './timings.ts'

export interface SupervisorOptions {
  readonly host: Host
  readonly random: Random
  readonly settings: NodeSettings
  /** Where each says that it is well; those that are not here, or empty, are not asked. */
  readonly health: Readonly<Partial<Record<ProcessName, string>>>
  /** Told of what is found missing or sick, and after each look that did something or failed. */
  readonly report: (event: SupervisorEvent) => void
}

export interface SupervisorEvent {
  /** As an Event of the node says it. */
  readonly reason: 'Missing' | 'Started' | 'Unhealthy' | 'Retry' | 'Crash' | 'SettingsChanged'
  readonly message: string
}

export interface SupervisorStatus {
  readonly looks: number
  /** What came of them. */
  readonly outcomes: Readonly<Record<Outcome['kind'], number>>
  readonly last: Outcome | undefined
  /** The one that is being started now, and what is started with it. */
  readonly starting: ProcessName | undefined
  /** How often each was started. */
  readonly starts: Readonly<Record<ProcessName, number>>
  /** How often in a row each did not say that it is well. */
  readonly sick: Readonly<Record<ProcessName, number>>
  /** How often each was ended for that. */
  readonly ended: Readonly<Record<ProcessName, number>>
}

const LOOK_EVERY_MS = 10_000
const HEALTH_MS = 5000
const RETRY = { baseMs: 10_000, capMs: 120_000, jitter: 0.1 }
/**
 * What ends together, by one hand or for want of memory, does not end at the same moment: what was large is a while about
 * it. Whoever looked at the first death would start in the wrong order.
 */
const TOGETHER_MS = 1000

export class Supervisor {
  readonly #options: SupervisorOptions
  #settings: NodeSettings
  readonly #restart = new Set<ProcessName>()
  readonly #status = {
    looks: 0,
    outcomes: { ok: 0, crash: 0, retry: 0 },
    last: undefined as Outcome | undefined,
    starting: undefined as ProcessName | undefined,
    starts: perProcess(0),
    sick: perProcess(0),
    ended: perProcess(0),
  }
  readonly #health = new Map<ProcessName, Health>()
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
      // Those that died in a look which failed are why it failed.
      else if (this.#restart.size === 0) this.#wake = Promise.withResolvers()
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
      (await attempt({
        host,
        layout,
        settings: this.#settings,
        timings: timingsOf(host),
        signal,
        settle: () => sleep(host.clock, TOGETHER_MS, signal),
        starting: (name) => this.#starting(name),
      }))
    this.#status.looks++
    this.#status.outcomes[outcome.kind]++
    this.#status.last = outcome
    this.#status.starting = undefined
    const message = describeOutcome(outcome)
    if (outcome.kind === 'retry') report({ reason: 'Retry', message })
    if (outcome.kind === 'crash') report({ reason: 'Crash', message })
    if (outcome.kind !== 'ok' || outcome.started.length === 0) return outcome
    for (const name of outcome.started) this.#status.starts[name]++
    report({ reason: 'Started', message })
    return outcome
  }

  #starting(name: ProcessName): void {
    this.#status.starting = name
    this.#options.report({ reason: 'Missing', message: `${name} is not there and is started` })
  }

  /** Those that are to be started anew, and those that are not well. A process that does not end is tried again later. */
  async #endOld(): Promise<Outcome | undefined> {
    try {
      for (const name of this.#restart) {
        // What is not wanted any more is ended with all that it leaves.
        if (wantedProcesses(this.#settings).includes(name)) await this.#options.host.processes.kill(name)
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
    for (const name of PROCESS_NAMES) {
      const url = health[name]
      const [pid] = url === undefined || url === '' ? [] : await host.processes.find(name)
      this.#status.sick[name] = 0
      if (url === undefined || pid === undefined) continue
      const isWell = await host.web.get(url, {}, HEALTH_MS).then(
        () => true,
        () => false,
      )
      const nowMs = host.clock.elapsed()
      const found = nextHealth(this.#health.get(name), pid, isWell, nowMs)
      this.#health.set(name, found)
      this.#status.sick[name] = found.failures
      if (!isLost(found, nowMs)) continue
      this.#status.sick[name] = 0
      this.#status.ended[name]++
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
  const policies = differs('networkPolicyOptions') ? (['kube-network-policies'] as const) : []
  if (isNetwork) return ['kubelet', 'flanneld', 'kube-proxy', ...policies]
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
    ...policies,
  ]
}
