/** Plans the final steps after every machine has new certificates or keys. Pure. */
import type { Afterwards } from '../state/stages.ts'
import type { Plan } from './step.ts'

const DESCRIBE: Readonly<Record<Afterwards, string>> = {
  'rewrite-secrets': 'rewrite every Secret',
  'restart-pods': "restart the cluster's own pods",
}

export function planAfterwards(after: Afterwards): Plan {
  const step = { host: '', describe: DESCRIBE[after], action: { type: after } } as const
  return { waves: [{ name: 'afterwards', width: 1, tolerates: 0, tracks: [[step]] }], faults: [], notes: [] }
}
