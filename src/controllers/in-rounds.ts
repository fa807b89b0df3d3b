/** Work of a controller that comes again and again until it ends, the first time at once. */
import { sleep } from '#lib/clock.ts'

import type { ControllerContext } from './controller.ts'

/** What a round fails of is logged under `failure`; the next one comes all the same, `periodMs` after its end. */
export async function inRounds(
  { clock, log, signal }: ControllerContext,
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
