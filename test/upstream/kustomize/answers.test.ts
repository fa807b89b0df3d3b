/** Tests that our kubectl builds the kustomizations of `cases.ts` as upstream's did (`answers.json`). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { buildAll, buildOurs, isListed, readAnswers } from './building.ts'
import { CASES } from './cases.ts'

const recorded = await readAnswers()
const built = await buildAll(buildOurs, Object.entries(CASES))

describe('kustomize with recorded answers', () => {
  for (const [name, text] of built) {
    if (isListed(name)) continue
    it(`builds ${name.replaceAll('\n', ' | ')} as upstream does`, () => assert.equal(text, recorded.get(name)))
  }

  it('has an answer for each case and no others', () => {
    assert.deepEqual([...recorded.keys()].sort(), Object.keys(CASES).sort())
  })
})
