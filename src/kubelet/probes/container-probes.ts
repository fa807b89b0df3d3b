/** Runs the probes of one container run: the startup probe first, then liveness and readiness in parallel. */
import type { Container, Probe } from '#apis/core/v1.ts'
import type { Clock, Timer } from '#lib/clock.ts'

import type { ProbeOutcome } from '../metrics/probe-counts.ts'
import { type EventSpec, type ProbeKind, probeWarning, unhealthy } from '../pod/events.ts'
import { afterProbe, firstProbe, periodMsOf, type ProbeState } from '../pod/probe.ts'
import type { ProbeAnswer } from './probe-action.ts'

export interface ProbedRun {
  readonly spec: Pick<Container, 'startupProbe' | 'livenessProbe' | 'readinessProbe'>
  readonly startedMs: number
  readonly clock: Clock
  readonly runProbe: (probe: Probe) => Promise<ProbeAnswer>
  /** True if the startup probe has passed. */
  readonly isStarted: () => boolean
  readonly recordEvent: (event: EventSpec) => void
  /** Called when the result of a probe changes, or is first known. */
  readonly onResult: (kind: ProbeKind, isFine: boolean) => void
  readonly count: (kind: ProbeKind, outcome: ProbeOutcome) => void
}

export class ContainerProbes {
  readonly #run: ProbedRun
  readonly #timers = new Map<ProbeKind, Timer>()
  readonly #ended = new Set<ProbeKind>()

  constructor(run: ProbedRun) {
    this.#run = run
    const { startupProbe, livenessProbe, readinessProbe } = run.spec
    for (const [kind, probe] of [
      ['Startup', startupProbe],
      ['Liveness', livenessProbe],
      ['Readiness', readinessProbe],
    ] as const) {
      if (probe !== undefined) this.#wait(kind, probe, firstProbe(probe, run.startedMs))
    }
  }

  /** Stops the probes of these kinds. A running probe then has no effect. */
  end(kinds: readonly ProbeKind[] = ['Startup', 'Liveness', 'Readiness']): void {
    for (const kind of kinds) {
      this.#ended.add(kind)
      this.#timers.get(kind)?.cancel()
    }
  }

  #wait(kind: ProbeKind, probe: Probe, state: ProbeState): void {
    const { clock } = this.#run
    const delayMs = state.nextMs - clock.now()
    this.#timers.set(
      kind,
      clock.after(delayMs, () => void this.#probe(kind, probe, state)),
    )
  }

  async #probe(kind: ProbeKind, probe: Probe, state: ProbeState): Promise<void> {
    const { isStarted, onResult, clock } = this.#run
    // The startup probe ends once it has passed; before that, only it runs.
    if (kind === 'Startup' && isStarted()) return
    const isEarly = kind !== 'Startup' && !isStarted()
    const later = { ...state, nextMs: clock.now() + periodMsOf(probe) }
    if (isEarly) return this.#wait(kind, probe, later)
    const startMs = clock.elapsed()
    const answer = await this.#runProbe(kind, probe)
    if (this.#ended.has(kind)) return
    const result = answer === undefined ? 'unknown' : answer ? 'successful' : 'failed'
    this.#run.count(kind, { result, seconds: (clock.elapsed() - startMs) / 1000 })
    if (answer === undefined) return this.#wait(kind, probe, later)
    const next = { ...afterProbe(probe, { ...state, nextMs: clock.now() }, answer) }
    if (next.verdict !== undefined && next.verdict !== state.verdict) onResult(kind, next.verdict)
    this.#wait(kind, probe, next)
  }

  /** Undefined: the result is unknown. */
  async #runProbe(kind: ProbeKind, probe: Probe): Promise<boolean | undefined> {
    const { runProbe, recordEvent } = this.#run
    for (let tries = 1; ; tries++) {
      const answer = await runProbe(probe)
      if (this.#ended.has(kind)) return undefined
      if (answer.isFine === true) {
        if (answer.warning !== undefined) recordEvent(probeWarning(kind, answer.warning))
        return true
      }
      if (answer.isFine === false) {
        recordEvent(unhealthy(kind, answer.output))
        return false
      }
      if (tries < MAX_TRIES) continue
      const message = `${kind} probe errored and resulted in unknown state: ${answer.error}`
      recordEvent({ type: 'Warning', reason: 'Unhealthy', message })
      return undefined
    }
  }
}

const MAX_TRIES = 3
