import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { checkFolders, type FolderSource, MAX_FILES } from './folder-order.ts'

function check(sources: readonly FolderSource[], shelved: readonly string[] = []): string[] {
  return checkFolders(sources, new Set(shelved))
}

describe('checkFolders', () => {
  it('reports folders that import each other', () => {
    const sources = [
      { path: 'room/a/one.ts', targets: ['room/b/two.ts'] },
      { path: 'room/b/three.ts', targets: ['room/a/four.ts'] },
    ]
    assert.deepEqual(check(sources), ['room: folder cycle: a/ → b/ → a/'])
  })

  it('accepts a file at the root that both folders import', () => {
    const sources = [
      { path: 'room/a/one.ts', targets: ['room/shape.ts'] },
      { path: 'room/b/two.ts', targets: ['room/shape.ts', 'room/a/one.ts'] },
      { path: 'room/shape.ts', targets: [] },
    ]
    assert.deepEqual(check(sources), [])
  })

  it('ignores imports in test files', () => {
    const sources = [
      { path: 'room/a/one.test.ts', targets: ['room/b/two.ts'] },
      { path: 'room/b/two.ts', targets: ['room/a/one.ts'] },
    ]
    assert.deepEqual(check(sources), [])
  })

  it('reports a folder with more than 25 files, unless it is listed as an exception', () => {
    const sources = Array.from({ length: MAX_FILES + 1 }, (_, n) => ({ path: `room/f${n}.ts`, targets: [] }))
    assert.deepEqual(check(sources), ['room: 26 files, more than 25; sort them into folders'])
    assert.deepEqual(check(sources, ['room/f3.ts']), [])
  })
})
