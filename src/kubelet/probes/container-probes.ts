/** The probes of one run of a container, on the clock: startup first, then liveness and readiness beside each other. */
import type { Container, Probe } from '#apis/core/v1.ts'
import type { Clock, Timer } from '#lib/clock.ts'

import { type Note, type ProbeKind, probeWarning, unhealthy } from '../kubelet-notes.ts'
import type { ProbeOutcome } from '../metrics/probe-counts.ts'
import { afterProbe, firstProbe, periodMsOf, type ProbeState } from '../probe.ts'
import type { Answer } from './probe-action.ts'

export interface ProbedRun {
  readonly spec: Pick<Container, 'startupProbe' | 'livenessProbe' | 'readinessProbe'>
  readonly startedMs: number
  readonly clock: Clock
  readonly ask: (probe: Probe) => Promise<Answer>
  /** Whether its startup probe has passed. */
  readonly isStarted: () => boolean
  readonly say: (note: Note) => void
  /** Its answers have come to something, for the first time or anew. */
  readonly judge: (kind: ProbeKind, isFine: boolean) => void
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

  /** Stops the probes of these kinds. A probe that is under way then has no effect. */
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
      clock.after(delayMs, () => void this.#turn(kind, probe, state)),
    )
  }

  async #turn(kind: ProbeKind, probe: Probe, state: ProbeState): Promise<void> {
    const { isStarted, judge, clock } = this.#run
    // After its startup probe has passed it is not asked again; before, only that is.
    if (kind === 'Startup' && isStarted()) return
    const isEarly = kind !== 'Startup' && !isStarted()
    const later = { ...state, nextMs: clock.now() + periodMsOf(probe) }
    if (isEarly) return this.#wait(kind, probe, later)
    const startMs = clock.elapsed()
    const answer = await this.#ask(kind, probe)
    if (this.#ended.has(kind)) return
    const result = answer === undefined ? 'unknown' : answer ? 'successful' : 'failed'
    this.#run.count(kind, { result, seconds: (clock.elapsed() - startMs) / 1000 })
    if (answer === undefined) return this.#wait(kind, probe, later)
    const next = { ...afterProbe(probe, { ...state, nextMs: clock.now() }, answer) }
    if (next.verdict !== undefined && next.verdict !== state.verdict) judge(kind, next.verdict)
    this.#wait(kind, probe, next)
  }

  /** Undefined: nobody knows. */
  async #ask(kind: ProbeKind, probe: Probe): Promise<boolean | undefined> {
    const { ask, say } = this.#run
    for (let tries = 1; ; tries++) {
      const answer = await ask(probe)
      if (this.#ended.has(kind)) return undefined
      if (answer.isFine === true) {
        if (answer.warning !== undefined) say(probeWarning(kind, answer.warning))
        return true
      }
      if (answer.isFine === false) {
        say(unhealthy(kind, answer.output))
        return false
      }
      if (tries < MAX_TRIES) continue
      const message = `${kind} probe errored and resulted in unknown state: ${answer.error}`
      say({ type: 'Warning', reason: 'Unhealthy', message })
      return undefined
    }
  }
}

const MAX_TRIES = 3
