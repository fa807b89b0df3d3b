import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { listFiles } from './page-files.ts'

describe('listFiles() of the built console', () => {
  it('lists files with their encodings and types', () => {
    const files = listFiles(['icon.svg', 'assets/main-1a.js', 'assets/main-1a.js.br', 'assets/main-1a.js.gz'])
    assert.deepEqual([...files.keys()], ['icon.svg', 'assets/main-1a.js'])
    const main = files.get('assets/main-1a.js')
    assert.deepEqual([main?.type, [...(main?.encodings ?? [])]], ['text/javascript; charset=utf-8', ['br', 'gzip']])
    assert.deepEqual([...(files.get('icon.svg')?.encodings ?? [])], [])
  })

  const omitted = [
    'assets/.hidden.js',
    'assets/main.html',
    'assets/main.sh',
    'assets/main',
    'assets/deep/main.js',
    'assets/a b.js',
    '../secret.js',
    'assets/x.constructor',
    'assets/main.js.br',
  ]
  for (const path of omitted) it(`omits ${path}`, () => assert.equal(listFiles([path]).size, 0))
})
