/** The probes of all containers of a pod that run. */
import type { Pod } from '#apis/core/v1.ts'

import { type ContainerRecord, fieldPathOf, isRunning } from '../container-runs.ts'
import { type ProbeKind, probeKills } from '../kubelet-notes.ts'
import { ContainerProbes } from '../probes/container-probes.ts'
import type { ProbeTarget } from '../probes/probe-action.ts'
import type { Doom } from './container-ender.ts'
import type { PodHost } from './pod-host.ts'

export interface PodProbesOptions {
  readonly host: PodHost
  readonly pod: () => Pod
  readonly target: (record: ContainerRecord, containerId: string) => ProbeTarget
  /** A container is to be ended, and why. */
  readonly doom: (record: ContainerRecord, doom: Doom) => void
  /** Something is to be told. */
  readonly changed: () => void
}

export class PodProbes {
  readonly #options: PodProbesOptions
  /** By id of the runtime. */
  readonly #probes = new Map<string, ContainerProbes>()

  constructor(options: PodProbesOptions) {
    this.#options = options
  }

  /** Whoever runs is probed; whoever does not is not any more. */
  watch(records: readonly ContainerRecord[]): void {
    const live = new Set<string>()
    for (const record of records) {
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

  /** Ends the probes that could restart containers. Readiness probes go on, so that endpoints follow a pod that terminates. */
  endLivenessAndStartup(containerIds: Iterable<string> = this.#probes.keys()): void {
    for (const id of containerIds) this.#probes.get(id)?.end(['Startup', 'Liveness'])
  }

  end(): void {
    const { host, pod } = this.#options
    for (const probes of this.#probes.values()) probes.end()
    this.#probes.clear()
    const { initContainers = [], containers, ephemeralContainers = [] } = pod().spec
    for (const { name } of [...initContainers, ...containers, ...ephemeralContainers]) host.probes.forget(pod(), name)
  }

  #probe(record: ContainerRecord, id: string, startedMs: number): ContainerProbes {
    const { host, pod, target } = this.#options
    return new ContainerProbes({
      spec: record.spec,
      startedMs,
      clock: host.clock,
      ask: (probe) => host.askProbe(probe, target(record, id)),
      isStarted: () => record.isStarted,
      say: (note) => host.note(pod(), note, fieldPathOf(record)),
      count: (kind, outcome) => host.probes.count(pod(), record.spec.name, kind, outcome),
      judge: (kind, isFine) => this.#judge(record, kind, isFine),
    })
  }

  #judge(record: ContainerRecord, kind: ProbeKind, isFine: boolean): void {
    if (kind === 'Readiness') record.isReady = isFine
    else if (!isFine) this.#doom(record, kind)
    else if (kind === 'Startup') {
      record.isStarted = true
      if (record.spec.readinessProbe === undefined) record.isReady = true
    }
    this.#options.changed()
  }

  #doom(record: ContainerRecord, kind: ProbeKind): void {
    const { name, restartPolicy, startupProbe, livenessProbe } = record.spec
    const probe = kind === 'Startup' ? startupProbe : livenessProbe
    const policy = restartPolicy ?? this.#options.pod().spec.restartPolicy
    const why = probeKills(name, kind, policy !== 'Never')
    this.#options.doom(record, { why, graceSeconds: probe?.terminationGracePeriodSeconds })
  }
}

/** How a container is reached. */
export function targetOf(
  { facts }: Pick<PodHost, 'facts'>,
  { spec: { hostNetwork } }: Pod,
  { record, containerId, ips }: { record: ContainerRecord; containerId: string; ips: readonly string[] },
): ProbeTarget {
  const [address = ''] = hostNetwork === true ? facts.addresses : ips
  const ports = (record.spec.ports ?? []).flatMap(({ name, containerPort }) =>
    name === undefined ? [] : [[name, containerPort] as const],
  )
  return { containerId, address, ports: new Map(ports) }
}

const SCHEME = /^.*:\/\//

/** As the runtime names the newest of a container. */
export function idOf({ run }: Pick<ContainerRecord, 'run'>): string | undefined {
  return run === undefined || run.id === '' ? undefined : run.id.replace(SCHEME, '')
}
