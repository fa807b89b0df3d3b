/** Runs periodic work of a controller; the first run is immediate. */
import { sleep } from '#lib/clock.ts'

import type { ControllerContext } from './controller.ts'

/** Logs errors as `failure`; the next round starts `periodMs` after the end of this one. */
export async function runPeriodically(
  { clock, log, signal }: Pick<ControllerContext, 'clock' | 'log' | 'signal'>,
  periodMs: number,
  failure: string,
  round: () => Promise<void> | void,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await round()
    } catch (error) {
      if (!signal.aborted) log.error(error, failure)
    }
    await sleep(clock, periodMs, signal, { background: true }).catch(() => undefined)
  }
}
