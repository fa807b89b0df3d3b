/** Collects all responses that show the content of the store, by revision. */
import type { Revision } from '#storage/backend.ts'

import type { History, OperationOf } from '../history.ts'
import type { Item } from '../store.ts'
import { hasEffect } from './log.ts'

export type Answer = OperationOf<'commit'> | OperationOf<'range'>

/** The information of a watch event about one key. Other rules check watches; this only helps to find what happened. */
export interface Glimpse {
  readonly method: 'event'
  readonly key: string
  readonly shown: Item | undefined
  readonly end: number
  readonly endMs: number
}

export type Observation = Answer | Glimpse

export type Observations = ReadonlyMap<Revision, readonly Observation[]>

export function gatherObservations({ operations, watches }: History): Observations {
  const found = new Map<Revision, Observation[]>()
  const add = (revision: Revision, observation: Observation): void => {
    const same = found.get(revision)
    if (same === undefined) found.set(revision, [observation])
    else same.push(observation)
  }
  for (const operation of operations) {
    if (operation.method !== 'commit' && operation.method !== 'range') continue
    const { result } = operation
    // A commit that changed something is compared when it is applied.
    const isWrite = operation.method === 'commit' && operation.result?.ok && hasEffect(operation)
    if (result !== undefined && !isWrite) add(result.revision, operation)
  }
  const seen = new Set<string>()
  for (const { tick: end, ms: endMs, ...event } of watches.flatMap(({ batches }) => batches.flatMap(withMoment))) {
    const id = `${event.key} ${event.mod}`
    if (seen.has(id)) continue
    seen.add(id)
    const { key, type, mod, previous, ...rest } = event
    const moment = { method: 'event', key, end, endMs } as const
    add(mod - 1, { ...moment, shown: previous })
    add(mod, { ...moment, shown: type === 'put' ? { key, mod, ...rest } : undefined })
  }
  return found
}

type SeenBatch = History['watches'][number]['batches'][number]

function withMoment({ events, tick, ms }: SeenBatch): (SeenBatch['events'][number] & { tick: number; ms: number })[] {
  return events.map((event) => ({ ...event, tick, ms }))
}
