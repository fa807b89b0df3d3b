/** Asking again and again, for what cannot be watched. */
import { sleep } from '#lib/clock.ts'

import type { Invocation } from './command.ts'

/** As upstream asks. */
const PERIOD_MS = 1000

/** Whether it became true in time. */
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
