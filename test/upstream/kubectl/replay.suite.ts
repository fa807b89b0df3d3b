/**
 * Replays recorded command lines with our kubectl against a cluster in this process. The output must equal upstream's.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type Answer, readAnswers, recordedScenes } from './answers.ts'
import { differencesBetween } from './masks.ts'
import type { Scene } from './scene.ts'
import { withinThisProcessAt } from './sides.ts'
import { openStage, type Stage } from './stage.ts'

const RECORD = 'Record the answers again: node test/upstream/kubectl.ts --record'

/** Defines a test for each scene that is chosen. */
export async function replay(isChosen: (scene: Scene) => boolean): Promise<void> {
  const recorded = await readAnswers()
  const scenes = (await recordedScenes()).filter(isChosen)
  describe('kubectl', () => {
    let stage: Stage
    before(async () => {
      stage = await openStage(withinThisProcessAt)
    })
    after(() => stage[Symbol.asyncDispose]())
    for (const scene of scenes) {
      it(`prints what upstream's prints: ${scene.name}`, async () => {
        assert.deepEqual(differences(recorded.get(scene.name) ?? [], await stage.play(scene)), [])
      })
    }
  })
}

/** Lines that answer differently, with the differences. */
function differences(theirs: readonly Answer[], ours: readonly Answer[]): string[][] {
  const [expected, found] = [theirs, ours].map((answers) => answers.map(({ line }) => line))
  assert.deepEqual(found, expected, RECORD)
  return ours.flatMap((answer, at) => {
    const different = differencesBetween(theirs[at] ?? answer, answer)
    return different.length === 0 ? [] : [[answer.line, ...different]]
  })
}
