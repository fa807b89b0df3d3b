/**
 * Reduces the memory that a program needs at its start, with V8 settings. Start-up code runs once, so optimizing it
 * costs more than running it, and a grown young generation shrinks slowly. Both settings return to normal when requests
 * arrive.
 */
import { setFlagsFromString } from 'node:v8'

/**
 * This filter matches no function. --no-maglev would delay optimization: functions that ran without Maglev need eight
 * times as many calls before V8 reconsiders them, which would slow down the first ten thousand requests.
 */
const WHILE_STARTING = ['--semi-space-growth-factor=1', '--no-opt', '--maglev-filter=none-yet']
const AS_USUAL = ['--semi-space-growth-factor=2', '--opt', '--maglev-filter=*']

export async function startSmall<T>(start: () => Promise<T>): Promise<T> {
  for (const flag of WHILE_STARTING) setFlagsFromString(flag)
  try {
    return await start()
  } finally {
    for (const flag of AS_USUAL) setFlagsFromString(flag)
  }
}
