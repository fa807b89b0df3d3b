/** Colours for states that people look for. Everything that is neither good nor bad has none. */

export type Tone = 'good' | 'busy' | 'bad'

const STATE_COLUMNS: ReadonlySet<string> = new Set(['Status', 'Phase', 'State', 'Type', 'Ready', 'Synced', 'Available'])

const GOOD = /^(?:Running|Ready|Active|Bound|Available|Succeeded|Complete|Completed|True|Established|Normal)$/i
const BUSY =
  /^(?:Pending|ContainerCreating|PodInitializing|Init:\d.*|Terminating|Progressing|Released|Unknown|Suspended|SchedulingGated)$/i
const BAD =
  /(?:Error|BackOff|Failed|NotReady|Evicted|OOMKilled|Lost|Invalid|Unschedulable|^False$|^Warning$|DeadlineExceeded)/i

/** `row`: all cells of its row. */
export function toneOf(column: string, text: string, row: readonly unknown[] = []): Tone | undefined {
  if (!STATE_COLUMNS.has(column)) return undefined
  const [, ready, wanted] = /^(\d+)\/(\d+)$/.exec(text) ?? []
  // A pod that has completed is not ready any more, as it should be.
  if (ready !== undefined) return ready === wanted || row.includes('Completed') ? undefined : 'busy'
  if (BAD.test(text)) return 'bad'
  if (BUSY.test(text)) return 'busy'
  return GOOD.test(text) ? 'good' : undefined
}
