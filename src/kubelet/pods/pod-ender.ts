/** The ends of a pod's containers: of those that failed a probe, of those whose time has come, and of all when the pod goes. */
import type { Pod } from '#apis/core/v1.ts'

import { planContainers } from '../container-plan.ts'
import { type ContainerRecord, isRunning } from '../container-runs.ts'
import { changed, type Note, stopping } from '../kubelet-notes.ts'
import { containerHash } from './container-config.ts'
import { type Doom, endContainer, MIN_GRACE_SECONDS } from './container-ender.ts'
import type { PodHost } from './pod-host.ts'
import { idOf, targetOf } from './pod-probes.ts'

export interface PodEnderOptions {
  readonly host: PodHost
  readonly pod: () => Pod
  readonly records: () => readonly ContainerRecord[]
  readonly ips: () => readonly string[]
  /** The API server does not have it any more: nobody waits for a grace. */
  readonly isDeleted: () => boolean
  /** Told before a container ends, and after. */
  readonly ending: (containerId: string) => void
  readonly ended: (record: ContainerRecord, containerId: string) => Promise<void>
}

export class PodEnder {
  readonly #options: PodEnderOptions
  /** To be ended and started again. */
  readonly #doomed = new Map<ContainerRecord, Doom>()
  #maxSeconds = Infinity
  /** When it was told to end as a whole. */
  #sinceMs: number | undefined

  constructor(options: PodEnderOptions) {
    this.#options = options
  }

  doom(record: ContainerRecord, doom: Doom): void {
    this.#doomed.set(record, doom)
  }

  /** Whoever runs with another image than is wanted is to be replaced. */
  doomChanged(): void {
    for (const record of this.#options.records().filter(isRunning)) {
      const { role, hash, spec } = record
      if ((role !== 'main' && role !== 'sidecar') || hash === undefined || hash === containerHash(spec)) continue
      record.isDue = true
      record.restarts = undefined
      this.doom(record, { why: changed(spec.name, role === 'sidecar') })
    }
  }

  async endDoomed(): Promise<void> {
    for (const [record, { why, graceSeconds }] of this.#doomed) {
      this.#doomed.delete(record)
      if (isRunning(record)) await this.end(record, why, graceSeconds)
    }
  }

  /** No more than this is given from now on, whatever the pod says. */
  limitGrace(seconds: number): void {
    this.#maxSeconds = Math.min(this.#maxSeconds, seconds)
  }

  get #graceSeconds(): number {
    return Math.min(this.#wishedSeconds, this.#maxSeconds)
  }

  get #wishedSeconds(): number {
    const { metadata, spec } = this.#options.pod()
    if (this.#options.isDeleted()) return 0
    return metadata.deletionGracePeriodSeconds ?? spec.terminationGracePeriodSeconds ?? 30
  }

  async end(record: ContainerRecord, why: Note, graceSeconds: number = this.#graceSeconds): Promise<void> {
    const { host, pod, ips, ending, ended } = this.#options
    const id = idOf(record)
    if (id === undefined) return
    ending(id)
    const target = targetOf(host, pod(), { record, containerId: id, ips: ips() })
    await endContainer(host, { pod: pod(), record, target, why, graceSeconds })
    await ended(record, id)
  }

  /** Less time than was given at first, if it ends already. */
  hurry(graceSeconds: number): void {
    if (this.#sinceMs === undefined) return
    const { runtime, log } = this.#options.host
    const timeout = Math.max(graceSeconds, MIN_GRACE_SECONDS)
    for (const record of this.#options.records().filter(isRunning)) {
      const containerId = idOf(record)
      if (containerId === undefined) continue
      runtime
        .stopContainer({ containerId, timeout })
        .catch((error: unknown) => log.error(error, 'A container could not be stopped', { containerId }))
    }
  }

  /** Others at once, then sidecars one by one, with what is left of the grace. */
  async endAll(): Promise<void> {
    const { host, pod, records } = this.#options
    const nowMs = (): number => host.clock.now()
    this.#sinceMs ??= nowMs()
    for (;;) {
      const { stop } = planContainers(pod().spec, records(), true)
      if (stop.length === 0) return
      const tookSeconds = Math.trunc((nowMs() - this.#sinceMs) / 1000)
      const leftSeconds = Math.max(this.#graceSeconds - tookSeconds, 0)
      await Promise.all(stop.map((record) => this.end(record, stopping(record.spec.name), leftSeconds)))
    }
  }
}
