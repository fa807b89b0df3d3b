/** The rules of docs/architecture.md as a failing build, and proof that each rule can fail. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'

import { checkFloors } from '../scripts/floors.ts'

const SRC = new URL('.', import.meta.url)

describe('the house', () => {
  it('stands: every import goes down, every room is listed, every shelf is whole, there is no cycle', () => {
    const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'))
    const sources = new Map(files.map((path) => [path.replaceAll('\\', '/'), readFileSync(new URL(path, SRC), 'utf8')]))
    assert.deepEqual(checkFloors(sources), [])
  })
})

/** A planted violation: the files, and what the check must say of them. */
const PLANTED: readonly [rule: string, files: Record<string, string>, complaint: RegExp][] = [
  [
    'an import that climbs',
    { 'lib/heap.ts': `import { f } from '#meta/kind.ts'`, 'meta/kind.ts': '' },
    /lib\/heap\.ts: room "lib" may not import "meta"/,
  ],
  [
    'an import that climbs lazily',
    { 'meta/kind.ts': `const m = await import('#storage/memory.ts')`, 'storage/memory.ts': '' },
    /room "meta" may not import "storage"/,
  ],
  [
    'an import that goes sideways',
    { 'kubelet/kubelet.ts': `import { f } from '#scheduler/queue.ts'`, 'scheduler/queue.ts': '' },
    /room "kubelet" may not import "scheduler"/,
  ],
  [
    'a type import that goes sideways',
    { 'client/rest.ts': `import type { B } from '#storage/backend.ts'`, 'storage/backend.ts': '' },
    /room "client" may not import "storage"/,
  ],
  [
    'a re-export that climbs',
    { 'meta/kind.ts': `export { a } from '#apis/kinds.ts'`, 'apis/kinds.ts': '' },
    /room "meta" may not import "apis"/,
  ],
  [
    'a relative import that leaves the room',
    { 'model/pods.ts': `import { f } from '../meta/kind.ts'`, 'meta/kind.ts': '' },
    /"\.\.\/meta\/kind\.ts" leaves the room; write "#meta\/kind\.ts"/,
  ],
  [
    'a room that imports itself by its full name',
    { 'lib/a.ts': `import { f } from '#lib/b.ts'`, 'lib/b.ts': '' },
    /is in the same room/,
  ],
  [
    'a head among the imports',
    { 'lib/a.ts': `import './b.ts'\n/** What this is. */\nimport './c.ts'`, 'lib/b.ts': '', 'lib/c.ts': '' },
    /lib\/a\.ts: its head has slipped/,
  ],
  ['an import of nothing', { 'lib/a.ts': `import { f } from './gone.ts'` }, /"\.\/gone\.ts" does not exist/],
  [
    'a cycle',
    { 'lib/a.ts': `import './b.ts'`, 'lib/b.ts': `import './c.ts'`, 'lib/c.ts': `import type { A } from './a.ts'` },
    /import cycle: lib\/a\.ts → lib\/b\.ts → lib\/c\.ts → lib\/a\.ts/,
  ],
  ['an unlisted room', { 'attic/a.ts': '' }, /room "attic" is not listed/],
  ['a name that says nothing', { 'lib/utils.ts': '' }, /"utils" says nothing/],
  [
    'a shelf file missing from its index',
    {
      'scheduler/plugins/index.ts': `import { a } from './a.ts'`,
      'scheduler/plugins/a.ts': '',
      'scheduler/plugins/b.ts': '',
    },
    /scheduler\/plugins\/b\.ts: not listed in scheduler\/plugins\/index\.ts/,
  ],
  [
    'a source that uses what only tests may',
    { 'kubectl/a.ts': `import { aPod } from '#testing/objects.ts'`, 'testing/objects.ts': '' },
    /room "kubectl" may not import "testing"/,
  ],
  ['a dashboard that needs Node', { 'dashboard/main.ts': `import { x } from 'node:fs'` }, /runs in a browser/],
]

describe('the floor check', () => {
  for (const [rule, files, complaint] of PLANTED) {
    it(`fails on ${rule}`, () => {
      assert.match(checkFloors(new Map(Object.entries(files))).join('\n'), complaint)
    })
  }

  it('lets a test use the testing room, a lazy import close a ring, and a comment say anything', () => {
    const files = {
      'kubectl/a.ts': `// import { x } from '#cmd/main.ts'\n/* import '#cmd/main.ts' */`,
      'kubectl/a.test.ts': `import { aPod } from '#testing/objects.ts'`,
      'testing/objects.ts': '',
      'cmd/main.ts': `const f = () => import('./up.ts')`,
      'cmd/up.ts': `import { table } from './main.ts'`,
    }
    assert.deepEqual(checkFloors(new Map(Object.entries(files))), [])
  })
})
