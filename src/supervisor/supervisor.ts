/**
 * Supervises the processes of a worker node: checks them periodically, and at once after one has ended; delays grow
 * after failures. It kills a process that fails its health checks, so that the next check restarts it. Its status can
 * be read at any time.
 */
import { createBackoff } from '#lib/backoff.ts'
import { sleep } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

import { attempt } from './attempt.ts'
import { type HealthHistory, isLost, recordHealth, LOST_AFTER_FAILURES } from './health-history.ts'
import type { Host } from './host.ts'
import { describeOutcome, type Outcome } from './outcome.ts'
import { perProcess, PROCESS_NAMES, type ProcessName } from './process-names.ts'
import { type NodeSettings, tidySettings, wantedProcesses } from './settings.ts'
import { timingsOf } from './timings.ts'

export interface SupervisorOptions {
  readonly host: Host
  readonly random: Random
  readonly settings: NodeSettings
  /** The health endpoint of each process; missing or empty ones are not checked. */
  readonly health: Readonly<Partial<Record<ProcessName, string>>>
  /** Receives missing and unhealthy processes, and the result of each check that did something or failed. */
  readonly report: (event: SupervisorEvent) => void
}

export interface SupervisorEvent {
  /** The form of an Event of the node. */
  readonly reason: 'Missing' | 'Started' | 'Unhealthy' | 'Retry' | 'Crash' | 'SettingsChanged'
  readonly message: string
}

export interface SupervisorStatus {
  readonly looks: number
  /** The outcomes of checks. */
  readonly outcomes: Readonly<Record<Outcome['kind'], number>>
  readonly last: Outcome | undefined
  /** The process that is starting now, with those it starts. */
  readonly starting: ProcessName | undefined
  /** The number of starts of each process. */
  readonly starts: Readonly<Record<ProcessName, number>>
  /** The consecutive failed health checks of each process. */
  readonly sick: Readonly<Record<ProcessName, number>>
  /** The number of kills of each process for failed health checks. */
  readonly ended: Readonly<Record<ProcessName, number>>
}

const LOOK_EVERY_MS = 10_000
const HEALTH_MS = 5000
const RETRY = { baseMs: 10_000, capMs: 120_000, jitter: 0.1 }
/**
 * Processes that are killed together end at slightly different times, large ones later. A check right after the first
 * death would use the wrong start order, so it waits.
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
  readonly #health = new Map<ProcessName, HealthHistory>()
  #wake = Promise.withResolvers<void>()

  constructor(options: SupervisorOptions) {
    this.#options = options
    this.#settings = tidySettings(options.settings)
  }

  get status(): SupervisorStatus {
    return this.#status
  }

  /** Applies new settings: restarts processes whose flags changed. */
  change(settings: NodeSettings): void {
    const next = tidySettings(settings)
    const names = changedProcesses(this.#settings, next)
    this.#settings = next
    if (names.length > 0) this.restart(names)
  }

  /** For example after certificates changed. */
  restart(names: readonly ProcessName[]): void {
    for (const name of names) this.#restart.add(name)
    this.#options.report({ reason: 'SettingsChanged', message: `${names.join(', ')} will be restarted` })
    this.wake()
  }

  /** Runs the next check now. */
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
      // Deaths during a failed check are its cause.
      else if (this.#restart.size === 0) this.#wake = Promise.withResolvers()
      const waited = new AbortController()
      const rest = sleep(
        host.clock,
        outcome.kind === 'ok' ? LOOK_EVERY_MS : backoff.next(),
        AbortSignal.any([signal, waited.signal]),
      )
      // A wake-up after a failure has a cause, such as a new plan or another death, and resets the delay.
      await Promise.race([rest.catch(() => undefined), this.#wake.promise])
      waited.abort()
    }
  }

  /** Checks once. Rejects if the signal is aborted. */
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
    this.#options.report({ reason: 'Missing', message: `${name} is missing and is started` })
  }

  /** Kills processes that must restart or are unhealthy. A process that does not end is retried later. */
  async #endOld(): Promise<Outcome | undefined> {
    try {
      for (const name of this.#restart) {
        // Stops disabled processes and removes what they leave behind.
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
      const found = recordHealth(this.#health.get(name), pid, isWell, nowMs)
      this.#health.set(name, found)
      this.#status.sick[name] = found.failures
      if (!isLost(found, nowMs)) continue
      this.#status.sick[name] = 0
      this.#status.ended[name]++
      report({
        reason: 'Unhealthy',
        message: `${name} failed its health check ${LOST_AFTER_FAILURES} times in a row and is killed`,
      })
      await host.processes.kill(name)
    }
  }
}

/** The processes whose flags or files differ under new settings. */
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
