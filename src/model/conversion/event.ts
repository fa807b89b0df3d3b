/** Converts Events between the core group and `events.k8s.io`, which renamed most fields and deprecated others. */
import { rename, type Rule } from './rule.ts'

const toCore: ReadonlyMap<string, string> = new Map([
  ['regarding', 'involvedObject'],
  ['note', 'message'],
  ['reportingController', 'reportingComponent'],
  ['deprecatedSource', 'source'],
  ['deprecatedFirstTimestamp', 'firstTimestamp'],
  ['deprecatedLastTimestamp', 'lastTimestamp'],
  ['deprecatedCount', 'count'],
])
const fromCore: ReadonlyMap<string, string> = new Map([...toCore].map(([spoke, hub]) => [hub, spoke]))

export const eventRule: Rule = {
  spoke: { group: 'events.k8s.io', version: 'v1', kind: 'Event' },
  hub: { group: '', version: 'v1', kind: 'Event' },
  differences: [...toCore].flat().sort(),
  toHub: (event) => rename(event, toCore),
  fromHub: (event) => rename(event, fromCore),
}
