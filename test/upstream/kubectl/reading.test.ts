/** Tests that command lines that change nothing print what upstream's kubectl printed (`answers`). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { parseAnswers, readAnswers, recordedScenes } from './answers.ts'
import { replay } from './replay.suite.ts'

await replay(({ mode }) => mode === 'reads')

describe('recorded answers of kubectl', () => {
  it('cover all scenes', async () => {
    const scenes = (await recordedScenes()).map(({ name }) => name)
    assert.deepEqual([...(await readAnswers()).keys()].sort(), scenes.sort())
  })

  it('round-trip through their file format', () => {
    const text = '== one\n$ get pods\n> NAME\n>~last\n! error: x\n= 1\n$ get none\n'
    const answers = [
      { line: 'get pods', code: 1, out: 'NAME\nlast', err: 'error: x\n' },
      { line: 'get none', code: 0, out: '', err: '' },
    ]
    assert.deepEqual([...parseAnswers(text)], [['one', answers]])
  })
})
