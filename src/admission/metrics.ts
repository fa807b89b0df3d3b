/** Metrics of admission, as a whole and by plugin. Only plugins that handle a write are measured. */
import type { Operation } from '#apiserver/registry/admission.ts'
import type { Clock } from '#lib/clock.ts'
import type { Histogram } from '#lib/metrics/metrics.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import type { AdmissionPlugin } from './plugin.ts'

export interface AdmissionMeter {
  /** Starts one step of a write. */
  begin(operation: Operation): AdmissionStep
}

export interface AdmissionStep {
  asking(plugin: AdmissionPlugin): void
  /** The last plugin admitted the write. */
  admitted(): void
  /** The last plugin refused, which ends the step. */
  rejected(): void
  /** All plugins admitted the write. */
  end(): void
}

type Find = (name: string, operation: Operation, isRejected: boolean) => Histogram

export function createAdmissionMetrics(meters: ServerMeters, clock: Clock, type: 'admit' | 'validate'): AdmissionMeter {
  const plugins = meters.family('apiserver_admission_controller_admission_duration_seconds')
  const steps = meters.family('apiserver_admission_step_admission_duration_seconds')
  const find = remembered((name, operation, isRejected) => {
    const rejected = String(isRejected)
    return name === '' ? steps.labels(type, operation, rejected) : plugins.labels(name, type, operation, rejected)
  })
  return { begin: (operation) => new Step(clock, find, operation) }
}

class Step implements AdmissionStep {
  readonly #clock: Clock
  readonly #find: Find
  readonly #operation: Operation
  readonly #startMs: number
  /** The start time of the last plugin: the end of the one before. */
  #lapMs: number
  #plugin = ''

  constructor(clock: Clock, find: Find, operation: Operation) {
    this.#clock = clock
    this.#find = find
    this.#operation = operation
    this.#startMs = this.#lapMs = clock.elapsed()
  }

  asking({ name }: AdmissionPlugin): void {
    this.#plugin = name
  }

  admitted(): void {
    this.#observe(false)
    this.#plugin = ''
  }

  rejected(): void {
    if (this.#plugin !== '') this.#observe(true)
    this.#close(true)
  }

  end(): void {
    this.#close(false)
  }

  #observe(isRejected: boolean): void {
    const nowMs = this.#clock.elapsed()
    this.#find(this.#plugin, this.#operation, isRejected).observe((nowMs - this.#lapMs) / 1000)
    this.#lapMs = nowMs
  }

  #close(isRejected: boolean): void {
    this.#find('', this.#operation, isRejected).observe((this.#clock.elapsed() - this.#startMs) / 1000)
  }
}

/** By plugin, then by operation and result. */
function remembered(find: Find): Find {
  const known = new Map<string, Map<string, Histogram>>()
  return (name, operation, isRejected) => {
    let byOutcome = known.get(name)
    if (byOutcome === undefined) known.set(name, (byOutcome = new Map()))
    const outcome = isRejected ? `${operation}!` : operation
    let histogram = byOutcome.get(outcome)
    if (histogram === undefined) byOutcome.set(outcome, (histogram = find(name, operation, isRejected)))
    return histogram
  }
}
