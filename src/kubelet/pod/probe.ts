/** Schedules the probes of a container and counts consecutive results. Pure. */
import type { Probe } from '#apis/core/v1.ts'

/** State of one probe of one container run. */
export interface ProbeState {
  readonly nextMs: number
  /** Number of consecutive equal results. */
  readonly streak: number
  readonly wasFine: boolean | undefined
  /** The result after enough consecutive ones; undefined before that. */
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

/** The state after one more result. */
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
