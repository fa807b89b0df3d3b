import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import {
  compareCounts,
  countByRoom,
  findBannedProse,
  findBannedWords,
  readLimits,
  readPages,
  readSources,
} from './plain-words.ts'

function wordsIn(source: string): string[] {
  return findBannedWords(source).map(({ line, word }) => `${line} ${word}`)
}

describe('findBannedWords', () => {
  it('finds banned words in identifiers', () => {
    assert.deepEqual(wordsIn('const a = 1\nconst toldBy = isHeld(threshold)'), ['2 toldBy', '2 isHeld'])
  })

  it('finds vague names of types, and no other uses of those names', () => {
    assert.deepEqual(wordsIn('interface Place {}\nconst x = new URL(Place)'), ['1 Place'])
  })

  it('finds banned phrases in comments, log messages and names of tests', () => {
    const source = [
      '/** A node that is told. */',
      "log.info('Nothing was said')",
      "it('has a file of its own', () => {})",
      '// It is let in.',
      '// Nobody waits.',
    ]
    assert.deepEqual(wordsIn(source.join('\n')), ['1 told', '2 said', '3 of its own', '4 is let', '5 Nobody'])
  })

  it('finds comments that begin with What or Who', () => {
    const source = [
      '/** What a pod has. */',
      '/**',
      ' * Who asks.',
      ' */',
      '// Whoever waits.',
      '/** A pod. What it has. */',
    ]
    assert.deepEqual(wordsIn(source.join('\n')), ['1 What', '3 Who', '5 Whoever'])
  })

  it('finds banned phrases in flag usages and help texts', () => {
    const source = [
      "const image = flag(string, '', 'What ' + 'was said')",
      "const row = { short: 'Held', long: `Told` }",
      "const all = flag(strings, ['a', 'b'], 'A wish')",
    ]
    assert.deepEqual(wordsIn(source.join('\n')), ['1 said', '2 Held', '2 Told', '3 wish'])
  })

  it('checks every string of a file of flags', () => {
    const source = "const rows = { port: 'int The port that is held' }"
    assert.deepEqual(wordsIn(source), [])
    for (const path of ['cmd/proxy/flags.ts', 'control-plane/flags/access-flags.ts']) {
      assert.deepEqual(findBannedWords(source, path), [{ line: 1, word: 'held' }])
    }
  })

  it('ignores other strings', () => {
    assert.deepEqual(wordsIn("throw new Error('the lock is held')\nconst pattern = /'held/\nconst b = `told`"), [])
  })

  it('reads the code inside template strings', () => {
    assert.deepEqual(wordsIn('const a = `x ${told({ b: `${said}` })} held`; const wish = 1'), [
      '1 told',
      '1 said',
      '1 wish',
    ])
  })
})

describe('findBannedProse', () => {
  it('finds banned words in a page, whatever their case', () => {
    const page = 'A reader has the keys.\nWhoever reads it, and nobody else.'
    assert.deepEqual(findBannedProse(page), [
      { line: 2, word: 'Whoever' },
      { line: 2, word: 'nobody' },
    ])
  })

  it('finds none in the pages of this repository', () => {
    const found = [...readPages()].flatMap(([path, page]) =>
      findBannedProse(page).map(({ line, word }) => `${path}:${line}: ${word}`),
    )
    assert.deepEqual(found, [])
  })
})

describe('compareCounts', () => {
  it('finds no folder of src with more banned words than scripts/plain-words.json allows', () => {
    assert.deepEqual(compareCounts(countByRoom(readSources()), readLimits()), [])
  })

  it('reports a folder whose count rose above its recorded limit, or fell below it', () => {
    const complaints = compareCounts({ lib: 3, meta: 1 }, { lib: 2, meta: 4, cel: 1 })
    assert.deepEqual(
      complaints.map((line) => line.split(';')[0]),
      [
        'src/cel: 0 banned words, fewer than 1',
        'src/lib: 3 banned words, 2 allowed',
        'src/meta: 1 banned words, fewer than 4',
      ],
    )
  })
})
