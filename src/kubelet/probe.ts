/** When a container is probed, and what a probe's answers come to. Pure. */
import type { Probe } from '#apis/core/v1.ts'

/** Of one probe of one run of a container. */
export interface ProbeState {
  readonly nextMs: number
  /** How many answers of the same kind came in a row. */
  readonly streak: number
  readonly wasFine: boolean | undefined
  /** What the answers come to; undefined while there were too few. */
  readonly verdict: boolean | undefined
}

export const periodMsOf = ({ periodSeconds = 10 }: Probe): number => Math.max(1, periodSeconds) * 1000

export function firstProbe({ initialDelaySeconds = 0 }: Probe, startedMs: number): ProbeState {
  return {
    nextMs: startedMs + initialDelaySeconds * 1000,
    streak: 0,
    wasFine: undefined,
    verdict: undefined,
  }
}

/** After one more answer. */
export function afterProbe(probe: Probe, state: ProbeState, isFine: boolean): ProbeState {
  const { successThreshold = 1, failureThreshold = 3 } = probe
  const streak = state.wasFine === isFine ? state.streak + 1 : 1
  const isEnough = streak >= Math.max(1, isFine ? successThreshold : failureThreshold)
  return {
    nextMs: state.nextMs + periodMsOf(probe),
    streak,
    wasFine: isFine,
    verdict: isEnough ? isFine : state.verdict,
  }
}
