/** The clocks of past states: objects have the age that they had then, and timers run in real time. */
import type { Clock } from '#lib/clock.ts'

export function standingClock(clock: Clock, timeMs: number): Clock {
  return { ...timersOf(clock), now: () => timeMs }
}

/** Starts at `timeMs` and runs `speed` times as fast as the given clock. */
export function playingClock(clock: Clock, timeMs: number, speed: number): Clock {
  const startMs = clock.elapsed()
  return { ...timersOf(clock), now: () => timeMs + (clock.elapsed() - startMs) * speed }
}

function timersOf(clock: Clock): Omit<Clock, 'now'> {
  return {
    elapsed: () => clock.elapsed(),
    after: (delayMs, task, options) => clock.after(delayMs, task, options),
    during: (work) => clock.during(work),
  }
}
