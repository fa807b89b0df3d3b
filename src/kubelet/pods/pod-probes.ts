/** Runs the probes of all running containers of a pod. */
import { type ContainerRecord, fieldPathOf, idOf, isRunning } from '../pod/container-runs.ts'
import { probeKills, type ProbeKind } from '../pod/events.ts'
import { ContainerProbes } from '../probes/container-probes.ts'
import type { ProbeTarget } from '../probes/probe-action.ts'
import type { PodHost } from './pod-host.ts'
import type { PodState } from './pod-state.ts'

export interface PodProbesOptions {
  readonly host: PodHost
  readonly state: PodState
  /** Called when readiness or startup has changed, or a container has to be killed. */
  readonly changed: () => void
}

export class PodProbes {
  readonly #options: PodProbesOptions
  /** By container ID. */
  readonly #probes = new Map<string, ContainerProbes>()

  constructor(options: PodProbesOptions) {
    this.#options = options
  }

  /** Starts probes of running containers and ends those of others. */
  watch(): void {
    const live = new Set<string>()
    for (const record of this.#options.state.records) {
      const id = idOf(record)
      if (id === undefined || record.run === undefined || !isRunning(record)) continue
      live.add(id)
      if (!this.#probes.has(id)) this.#probes.set(id, this.#probe(record, id, record.run.startedMs))
    }
    for (const [id, probes] of this.#probes) {
      if (live.has(id)) continue
      probes.end()
      this.#probes.delete(id)
    }
  }

  /**
   * Ends the probes that could restart containers. Readiness probes continue, so that endpoints follow a terminating
   * pod.
   */
  endLivenessAndStartup(containerIds: Iterable<string> = this.#probes.keys()): void {
    for (const id of containerIds) this.#probes.get(id)?.end(['Startup', 'Liveness'])
  }

  end(): void {
    const { host, state } = this.#options
    for (const probes of this.#probes.values()) probes.end()
    this.#probes.clear()
    for (const { spec } of state.records) host.probes.forget(state.pod, spec.name)
  }

  #probe(record: ContainerRecord, id: string, startedMs: number): ContainerProbes {
    const { host, state } = this.#options
    return new ContainerProbes({
      spec: record.spec,
      startedMs,
      clock: host.clock,
      runProbe: (probe) => host.runProbe(probe, targetOf(host, state, record, id)),
      isStarted: () => record.isStarted,
      recordEvent: (event) => host.recordEvent(state.pod, event, fieldPathOf(record)),
      count: (kind, outcome) => host.probes.count(state.pod, record.spec.name, kind, outcome),
      onResult: (kind, isFine) => this.#applyResult(record, kind, isFine),
    })
  }

  #applyResult(record: ContainerRecord, kind: ProbeKind, isFine: boolean): void {
    if (kind === 'Readiness') record.isReady = isFine
    else if (!isFine) this.#requestKill(record, kind)
    else if (kind === 'Startup') {
      record.isStarted = true
      if (record.spec.readinessProbe === undefined) record.isReady = true
    }
    this.#options.changed()
  }

  #requestKill(record: ContainerRecord, kind: ProbeKind): void {
    const { name, restartPolicy, startupProbe, livenessProbe } = record.spec
    const probe = kind === 'Startup' ? startupProbe : livenessProbe
    const { state } = this.#options
    const policy = restartPolicy ?? state.pod.spec.restartPolicy
    const why = probeKills(name, kind, policy !== 'Never')
    state.killRequests.set(record, { why, graceSeconds: probe?.terminationGracePeriodSeconds })
  }
}

/** The address and ports at which a container is probed. */
export function targetOf(
  { facts }: Pick<PodHost, 'facts'>,
  { pod, sandbox }: Pick<PodState, 'pod' | 'sandbox'>,
  { spec }: ContainerRecord,
  containerId: string,
): ProbeTarget {
  const [address = ''] = pod.spec.hostNetwork === true ? facts.addresses : (sandbox?.ips ?? [])
  const ports = (spec.ports ?? []).flatMap(({ name, containerPort }) =>
    name === undefined ? [] : [[name, containerPort] as const],
  )
  return { containerId, address, ports: new Map(ports) }
}
