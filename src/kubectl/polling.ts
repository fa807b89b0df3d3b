/** Polls for conditions that cannot be watched. */
import { sleep } from '#lib/clock.ts'

import type { Invocation } from './command.ts'

/** Upstream's interval. */
const PERIOD_MS = 1000

/** True if the condition was met in time. */
export async function pollUntil(
  { clock, signal }: Pick<Invocation, 'clock' | 'signal'>,
  timeoutMs: number,
  isSo: () => Promise<boolean>,
): Promise<boolean> {
  const end = clock.elapsed() + timeoutMs
  for (;;) {
    if (await isSo()) return true
    if (clock.elapsed() + PERIOD_MS > end) return false
    await sleep(clock, PERIOD_MS, signal)
  }
}
