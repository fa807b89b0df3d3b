/**
 * Tests that our controllers, with a virtual clock, produce the same outcome of each scenario as upstream's recordings.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { readAnswers } from './answers.ts'
import { SCENARIOS } from './index.ts'
import { playAll } from './play.ts'
import type { Recording } from './recording.ts'
import { openStage } from './stage.ts'
import { compare } from './verdict.ts'

const RECORD = 'Record the answers again: node test/upstream/scenarios.ts --record'
const AT_ONCE = 8

const recorded = await readAnswers()
// Before the first test, because node:test follows every promise from then on, which takes a quarter of the time.
const played = await play()

async function play(): Promise<ReadonlyMap<string, Recording>> {
  await using stage = await openStage()
  return await stage.during(playAll(SCENARIOS, stage.nodes, { atOnce: AT_ONCE }))
}

describe('kube-controller-manager', () => {
  for (const { name, allows = [] } of SCENARIOS) {
    it(`has the same outcome as upstream's in scenario ${name}`, () => {
      const [theirs, ours] = [recorded.get(name), played.get(name)]
      assert.ok(theirs !== undefined && ours !== undefined, RECORD)
      assert.deepEqual(compare(allows, theirs, ours).differences, [])
    })
  }
  it('has a recording of each scenario and no others', () => {
    assert.deepEqual([...recorded.keys()].sort(), SCENARIOS.map(({ name }) => name).sort(), RECORD)
  })
})
