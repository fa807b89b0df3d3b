/** Polls for conditions that have no event, in tests. */
import assert from 'node:assert/strict'

import { realClock, sleep } from '#lib/clock.ts'

/** Polls until the predicate is true. */
export async function eventually<T>(ask: () => Promise<T> | T, isSo: (value: T) => boolean): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    const value = await ask()
    if (isSo(value)) return value
    if (attempt === 2000) assert.fail(`still not so: ${JSON.stringify(value)}`)
    await sleep(realClock, 20)
  }
}
