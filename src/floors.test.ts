/**
 * Tests that the imports follow the layers in docs/architecture.md, and that each layering rule reports a planted
 * violation.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'

import { checkFloors, checkInside, loadedFiles, unreachedFiles } from '../scripts/floors.ts'

const SRC = new URL('.', import.meta.url)
const KITS = new URL('../test/kits/', import.meta.url)

/** Paths are relative to `src`; those of test/kits begin with `kits/`. */
function readSources(folder: URL, prefix = ''): [path: string, text: string][] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => /\.tsx?$/.test(path))
  return files.map((path) => [prefix + path.replaceAll('\\', '/'), readFileSync(new URL(path, folder), 'utf8')])
}

/** Sources of the package's entries (scripts/build.ts). */
const ENTRIES = [
  'cmd/entry.ts',
  'cmd/main.ts',
  'client/public-api.ts',
  'control-plane/start.ts',
  'testing/public-api.ts',
  'console/main.tsx',
  'console/lists/worker-entry.ts',
  'console/logs/worker-entry.ts',
  'console/browser/style-sheets.d.ts',
]

describe('TypeScript sources', () => {
  const sources = new Map([...readSources(SRC), ...readSources(KITS, 'kits/')])

  it('import only from lower layers without cycles, and are in a listed folder and in its index, if it has one', () => {
    assert.deepEqual(checkFloors(sources), [])
  })

  for (const program of [
    'cmd/scheduler/scheduler.ts',
    'cmd/controller-manager/controller-manager.ts',
    'cmd/cloud-controller-manager/cloud-controller-manager.ts',
    'cmd/proxy/proxy.ts',
    'cmd/kubelet/kubelet.ts',
  ]) {
    it(`reachable from ${program} do not include the API server`, () => {
      assert.ok(sources.has(program))
      const loaded = [...loadedFiles(sources, program)]
      assert.deepEqual(
        loaded.filter((path) => /^(admission|apiserver|control-plane|resources|storage)\//.test(path)),
        [],
      )
    })
  }

  it('include no file that only tests import', () => {
    const others = [...sources.keys()].filter((path) => path.endsWith('.worker.ts') || path.startsWith('apis/'))
    assert.deepEqual(unreachedFiles(sources, [...ENTRIES, ...others]), [])
  })

  it('are in folders without import cycles between them, at most 25 files in each', () => {
    assert.deepEqual(checkInside(sources), [])
  })
})

/** A planted violation: the files, and what the check must say of them. */
const PLANTED: readonly [rule: string, files: Record<string, string>, complaint: RegExp][] = [
  [
    'an import of a higher layer',
    { 'lib/heap.ts': `import { f } from '#meta/kind.ts'`, 'meta/kind.ts': '' },
    /lib\/heap\.ts: room "lib" may not import "meta"/,
  ],
  [
    'a lazy import of a higher layer',
    { 'meta/kind.ts': `const m = await import('#storage/memory.ts')`, 'storage/memory.ts': '' },
    /room "meta" may not import "storage"/,
  ],
  [
    'an import of another top-level folder of the same layer',
    { 'kubelet/kubelet.ts': `import { f } from '#scheduler/queue/queue.ts'`, 'scheduler/queue.ts': '' },
    /room "kubelet" may not import "scheduler"/,
  ],
  [
    'a type import of another top-level folder of the same layer',
    { 'client/rest.ts': `import type { B } from '#storage/backend.ts'`, 'storage/backend.ts': '' },
    /room "client" may not import "storage"/,
  ],
  [
    'a re-export of a higher layer',
    { 'meta/kind.ts': `export { a } from '#apis/kinds.ts'`, 'apis/kinds.ts': '' },
    /room "meta" may not import "apis"/,
  ],
  [
    'a relative import that leaves the top-level folder',
    { 'model/pods.ts': `import { f } from '../meta/kind.ts'`, 'meta/kind.ts': '' },
    /"\.\.\/meta\/kind\.ts" leaves the room; write "#meta\/kind\.ts"/,
  ],
  [
    'a top-level folder that imports itself by its # alias',
    { 'lib/a.ts': `import { f } from '#lib/b.ts'`, 'lib/b.ts': '' },
    /is in the same room/,
  ],
  [
    'a file head between imports',
    { 'lib/a.ts': `import './b.ts'\n/** What this is. */\nimport './c.ts'`, 'lib/b.ts': '', 'lib/c.ts': '' },
    /lib\/a\.ts: its head has slipped/,
  ],
  ['an import of a missing file', { 'lib/a.ts': `import { f } from './gone.ts'` }, /"\.\/gone\.ts" does not exist/],
  [
    'an import cycle',
    { 'lib/a.ts': `import './b.ts'`, 'lib/b.ts': `import './c.ts'`, 'lib/c.ts': `import type { A } from './a.ts'` },
    /import cycle: lib\/a\.ts → lib\/b\.ts → lib\/c\.ts → lib\/a\.ts/,
  ],
  ['an unlisted top-level folder', { 'attic/a.ts': '' }, /room "attic" is not listed/],
  ['a vague file name', { 'lib/utils.ts': '' }, /"utils" says nothing/],
  [
    'a file that is missing from the index of its folder',
    {
      'scheduler/plugins/index.ts': `import { a } from './a.ts'`,
      'scheduler/plugins/a.ts': '',
      'scheduler/plugins/b.ts': '',
    },
    /scheduler\/plugins\/b\.ts: not listed in scheduler\/plugins\/index\.ts/,
  ],
  [
    'a source that imports a module for tests',
    { 'kubectl/a.ts': `import { aPod } from '#testing/objects.ts'`, 'testing/objects.ts': '' },
    /room "kubectl" may not import "testing"/,
  ],
  [
    'a source that imports a test kit',
    { 'kubelet/a.ts': `import { MemoryRuntime } from '#kits/cri/memory-runtime.ts'`, 'kits/cri/memory-runtime.ts': '' },
    /room "kubelet" may not import "kits"/,
  ],
  [
    'a source that imports a test kit by its path',
    { 'kubelet/a.ts': `import { MemoryRuntime } from '../../test/kits/cri/memory-runtime.ts'` },
    /kubelet\/a\.ts: "\.\.\/\.\.\/test\/kits\/cri\/memory-runtime\.ts" leaves src/,
  ],
  ['a console that needs Node', { 'console/main.ts': `import { x } from 'node:fs'` }, /runs in a browser/],
]

describe('the check of layers', () => {
  for (const [rule, files, complaint] of PLANTED) {
    it(`fails on ${rule}`, () => {
      assert.match(checkFloors(new Map(Object.entries(files))).join('\n'), complaint)
    })
  }

  it('finds source files that only tests import', () => {
    const files = {
      'cmd/entry.ts': `import type { A } from '#lib/a.ts'\nconst f = () => import('#lib/lazy.ts')`,
      'lib/a.ts': '',
      'lib/lazy.ts': '',
      'lib/fake.ts': '',
      'lib/a.test.ts': `import { fake } from './fake.ts'`,
      'kits/lib/fake.ts': '',
    }
    assert.deepEqual(unreachedFiles(new Map(Object.entries(files)), ['cmd/entry.ts']), ['lib/fake.ts'])
  })

  it('allows test kits in tests, lazy imports in cycles, and anything in comments', () => {
    const files = {
      'kubectl/a.ts': `// import { x } from '#cmd/main.ts'\n/* import '#cmd/main.ts' */`,
      'kubectl/a.test.ts': `import { aPod } from '#testing/objects.ts'\nimport { b } from '#kits/kubectl/b.ts'`,
      'kubectl/a.fixture.ts': `import { b } from '#kits/kubectl/b.ts'`,
      'testing/objects.ts': '',
      'kits/kubectl/b.ts': `import { c } from '#testing/objects.ts'`,
      'cmd/main.ts': `const f = () => import('./up.ts')`,
      'cmd/up.ts': `import { table } from './main.ts'`,
    }
    assert.deepEqual(checkFloors(new Map(Object.entries(files))), [])
  })
})
