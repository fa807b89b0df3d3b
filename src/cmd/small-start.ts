/**
 * A start that leaves little behind. What it does is done once, so optimizing it takes longer than doing it; and room for
 * young objects, once taken, is not given back for a long time. Both are as usual when requests come.
 */
import { setFlagsFromString } from 'node:v8'

/**
 * A filter that no function passes, not --no-maglev: what ran while there was no Maglev would have to run eight times as
 * often before it is looked at again, and the first ten thousand requests would pay for it.
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
