/** Random operations on a backend, compared with a simple model. */
import assert from 'node:assert/strict'

import * as fc from 'fast-check'

import type { Revision, StorageEvent } from '../backend.ts'
import { type Test, createBench, eventShape } from './bench.fixture.ts'
import { Model, operation, perform } from './model.fixture.ts'

const PROPERTY_SEED = 20_261_115

export function propertyTests(test: Test): void {
  test('agrees with a simple model for any sequence of operations', async (bench) => {
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 60, size: 'max' }), async (operations) => {
        const own = createBench(bench)
        const model = new Model(await own.backend.currentRevision())
        const begin = model.revision
        const live = own.follow(begin + 1)
        const seen: StorageEvent[] = []
        const catchUp = async (): Promise<void> => {
          seen.push(...(await live.events(model.events.length - seen.length)))
        }
        for (const operation of operations) {
          // A watcher that has not read compacted events rightly loses its position.
          if (operation.op === 'compact') await catchUp()
          await perform(own, model, operation)
        }
        await catchUp()
        assert.deepEqual(seen.map(eventShape), model.events)
        await live.stop()
        const kept = model.events.filter((event) => (event[4] as Revision) > model.compacted)
        const past = own.follow(model.compacted + 1)
        assert.deepEqual((await past.events(kept.length)).map(eventShape), kept)
        await past.stop()
      }),
      { seed: PROPERTY_SEED, numRuns: 40, endOnFailure: true },
    )
  })
}
