/** A simple model of a backend, and random operations on both. */
import assert from 'node:assert/strict'

import * as fc from 'fast-check'

import type { KeyValue, Revision, Write } from '../backend.ts'
import { type Bench, rejects, bytes, text, shape } from './bench.fixture.ts'

interface State {
  readonly revision: Revision
  readonly items: ReadonlyMap<string, KeyValue>
}

/** The reference model: a full copy of the state for every revision. */
export class Model {
  readonly states: State[]
  readonly events: unknown[][] = []
  compacted: Revision

  constructor(revision: Revision) {
    this.states = [{ revision, items: new Map() }]
    this.compacted = revision
  }

  /** Never empty. */
  get #last(): State {
    return this.states.at(-1) as State
  }

  get items(): ReadonlyMap<string, KeyValue> {
    return this.#last.items
  }

  get revision(): Revision {
    return this.#last.revision
  }

  get first(): Revision {
    return this.states[0]?.revision ?? 0
  }

  at(revision: Revision): ReadonlyMap<string, KeyValue> {
    return (this.states.findLast((state) => state.revision <= revision) ?? this.#last).items
  }

  accepts(writes: readonly Write[]): boolean {
    return writes.every(
      ({ key, expected }) => expected === undefined || expected === (this.items.get(key)?.modRevision ?? 0),
    )
  }

  apply(writes: readonly Write[], revision: Revision): void {
    const items = new Map(this.items)
    for (const { key, value } of writes) {
      const previous = items.get(key)
      if (value === null && previous === undefined) continue
      const createRevision = previous?.createRevision ?? revision
      const shown = value ?? (previous as KeyValue).value
      const type = value === null ? 'delete' : 'put'
      const old = previous === undefined ? undefined : text(previous)
      this.events.push([type, key, text({ value: shown }), createRevision, revision, old])
      if (value === null) items.delete(key)
      else items.set(key, { key, value, createRevision, modRevision: revision, lease: 0 })
    }
    if (revision > this.revision) this.states.push({ revision, items })
  }
}

type Guard = 'none' | 'right' | 'absent' | 'stale'
interface PlannedWrite {
  readonly name: number
  readonly value: string | null
  readonly guard: Guard
}
type Operation =
  | { readonly op: 'commit'; readonly writes: readonly PlannedWrite[] }
  | { readonly op: 'range'; readonly back: number; readonly from: number; readonly limit: number }
  | { readonly op: 'compact'; readonly back: number }

const name = fc.integer({ min: 0, max: 7 })
const oneWrite = fc.record({
  name,
  value: fc.option(fc.string({ maxLength: 6 }), { freq: 4 }),
  guard: fc.constantFrom<Guard[]>('none', 'none', 'right', 'right', 'absent', 'stale'),
})
export const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      op: fc.constant('commit' as const),
      writes: fc.uniqueArray(oneWrite, { selector: (write) => write.name, minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('range' as const),
      back: fc.integer({ min: 0, max: 12 }),
      from: name,
      limit: fc.integer({ min: 0, max: 5 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('compact' as const), back: fc.integer({ min: 0, max: 8 }) }) },
)

export async function perform(bench: Bench, model: Model, operation: Operation): Promise<void> {
  if (operation.op === 'commit') return performCommit(bench, model, operation.writes)
  const revision = Math.max(model.first, model.revision - operation.back)
  if (operation.op === 'range') return performRange(bench, model, { ...operation, revision })
  await bench.backend.compact(revision)
  model.compacted = Math.max(model.compacted, revision)
}

async function performCommit({ backend, key }: Bench, model: Model, plans: readonly PlannedWrite[]): Promise<void> {
  const writes = plans.map((write) => planWrite(key(write.name), write, model))
  const before = writes.map(({ key }) => shape(model.items.get(key)))
  const result = await backend.commit(writes)
  assert.equal(result.ok, model.accepts(writes))
  assert.deepEqual((result.ok ? result.previous : result.current).map(shape), before)
  const changes = writes.some(({ key, value }) => value !== null || model.items.has(key))
  if (result.ok && changes) {
    assert.ok(result.revision > model.revision)
    model.apply(writes, result.revision)
  }
  assert.equal(await backend.currentRevision(), model.revision)
}

async function performRange(
  { backend, key, prefix, end }: Bench,
  model: Model,
  { back, from, limit, revision }: { back: number; from: number; limit: number; revision: Revision },
): Promise<void> {
  const start = from === 0 ? prefix : key(from)
  const answer = backend.range({ start, end, limit, ...(back > 0 && { revision }) })
  if (back > 0 && revision < model.compacted) return void (await rejects(answer, 'compacted'))
  const expected = [...model.at(back > 0 ? revision : model.revision).values()]
    .filter((item) => item.key >= start)
    .sort((a, b) => (a.key < b.key ? -1 : 1))
  const { items, count, more } = await answer
  const part = limit === 0 ? expected : expected.slice(0, limit)
  assert.deepEqual([items.map(shape), count, more], [part.map(shape), expected.length, part.length < expected.length])
}

function planWrite(key: string, write: PlannedWrite, model: Model): Write {
  const current = model.items.get(key)?.modRevision ?? 0
  const guards = { right: current, absent: 0, stale: Math.max(1, current - 1) }
  const value = write.value === null ? null : bytes(write.value)
  return write.guard === 'none' ? { key, value } : { key, value, expected: guards[write.guard] }
}
