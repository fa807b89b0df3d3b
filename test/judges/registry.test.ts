import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, it } from 'node:test'

import { COMMANDS } from '../reliability/api/commands.ts'
import { commitsSince } from './age.ts'
import { formatPage, type LastRun, parsePage } from './page.ts'
import { JUDGES, type Judge, REQUIREMENTS } from './registry.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** Scripts that make something for others, and judge nothing. */
const TOOLS = new Set(['test/upstream/containerd.ts', 'test/images/main.ts'])

const SCRIPTS = globSync('test/{upstream,reliability,bench,images,conformance}/*.ts', { cwd: ROOT })
const SOURCES = globSync('{test,src}/**/*.ts', { cwd: ROOT }).map((file) => ({
  file,
  text: readFileSync(join(ROOT, file), 'utf8'),
}))
const REGISTERED = new Set(JUDGES.map(({ command }) => command[0] ?? ''))

/** The file is a program of its own: its head says how to run it. */
function isProgram(file: string): boolean {
  const text = SOURCES.find((source) => source.file === file)?.text ?? ''
  const head = text.slice(0, text.indexOf('*/'))
  return head.includes(`node ${file}`)
}

/** By the name of a file: the files that import or start a file of that name. */
const USERS = new Map<string, Set<string>>()
for (const { file, text } of SOURCES)
  for (const [, name = ''] of text.matchAll(/([\w.-]+\.ts)'/g)) {
    const users = USERS.get(name) ?? new Set()
    USERS.set(name, users.add(file))
  }

function isUsed(file: string): boolean {
  return [...(USERS.get(basename(file)) ?? [])].some((user) => user !== file)
}

describe('registry of judges', () => {
  it('lists every script that can be run', () => {
    const missing = SCRIPTS.filter((file) => isProgram(file) && !REGISTERED.has(file) && !TOOLS.has(file))
    assert.deepEqual(missing, [])
  })

  it('lists every script that nothing imports', () => {
    const missing = SCRIPTS.filter((file) => !file.endsWith('.test.ts') && !isUsed(file) && !REGISTERED.has(file))
    assert.deepEqual(
      missing.filter((file) => !TOOLS.has(file)),
      [],
    )
  })

  it('lists every bench', () => {
    const benches = globSync('test/bench/*.bench.ts', { cwd: ROOT }).map((file) => basename(file, '.bench.ts'))
    const named = JUDGES.filter(({ command }) => command[0] === 'test/bench/main.ts').map(
      ({ command }) => command[1] ?? '',
    )
    assert.deepEqual(new Set(benches), new Set(named))
  })

  it('lists every command of the reliability harness', () => {
    const named = JUDGES.filter(({ command }) => command[0] === 'test/reliability/main.ts').map(
      ({ command }) => command[1],
    )
    assert.deepEqual(
      Object.keys(COMMANDS).filter((name) => !named.includes(name)),
      [],
    )
  })

  it('refers to existing scripts, folders and requirements', () => {
    for (const { name, command, rooms, needs, shows } of JUDGES) {
      assert.ok(existsSync(join(ROOT, command[0] ?? '')), `${name}: ${command[0]}`)
      for (const room of rooms) assert.ok(existsSync(join(ROOT, 'src', room)), `${name}: ${room}`)
      for (const need of needs) assert.ok(need in REQUIREMENTS, `${name}: ${need}`)
      assert.notEqual(shows, '', name)
    }
    assert.equal(new Set(JUDGES.map(({ name }) => name)).size, JUDGES.length)
  })
})

const JUDGE: Judge = {
  name: 'one',
  area: 'Area',
  shows: 'It shows',
  command: ['test/x.ts'],
  rooms: ['cel'],
  needs: [],
  minutes: 1,
}
const run = (more: Partial<LastRun>): LastRun => ({
  commit: 'abc1234',
  date: '2026-01-02',
  minutes: 1.5,
  hasPassed: true,
  result: '5 of 5',
  lastGreen: 'abc1234',
  ...more,
})

describe('page docs/judges.md', () => {
  const cases: readonly (readonly [title: string, LastRun])[] = [
    ['a run that passed', run({})],
    ['a run that failed', run({ hasPassed: false, result: 'exit code 1; 4 of 5', lastGreen: undefined })],
    ['a run that failed after one that passed', run({ hasPassed: false, lastGreen: 'def5678' })],
  ]
  for (const [title, last] of cases)
    it(`lists ${title}`, () => {
      assert.deepEqual(parsePage(formatPage(new Map([['one', last]]), [JUDGE])), new Map([['one', last]]))
    })

  it('marks judges that have not run', () => {
    assert.deepEqual(parsePage(formatPage(new Map(), [JUDGE])), new Map())
  })
})

describe("age of a judge's result", () => {
  const history = [
    { commit: 'fff0000', date: '2026-11-19', files: ['src/cel/a.ts'] },
    { commit: 'eee0000', date: '2026-11-19', files: ['src/kubelet/a.ts'] },
    { commit: 'abc1234', date: '2026-11-18', files: ['src/cel/a.ts'] },
  ]
  it('counts commits since the last pass that changed the folders of the judge', () => {
    assert.equal(commitsSince(JUDGE, new Map([['one', run({})]]), history), 1)
  })

  it('stops at a commit that changed no code', () => {
    const withDocs = [
      ...history.slice(0, 2),
      { commit: 'ddd0000', date: '2026-11-18', files: ['docs/judges.md'] },
      ...history.slice(2),
    ]
    assert.equal(commitsSince(JUDGE, new Map([['one', run({ commit: 'ddd0000', lastGreen: 'ddd0000' })]]), withDocs), 1)
  })

  it('counts from the last run that passed, not from one that failed', () => {
    const failed = run({ commit: 'fff0000', hasPassed: false })
    assert.equal(commitsSince(JUDGE, new Map([['one', failed]]), history), 1)
  })

  it('counts the commits of later days if the commit of the last pass was squashed', () => {
    const squashed = run({ commit: '1230000', lastGreen: '1230000', date: '2026-11-18' })
    assert.equal(commitsSince(JUDGE, new Map([['one', squashed]]), history), 1)
  })

  it('is infinite if the judge has never passed', () => {
    assert.equal(commitsSince(JUDGE, new Map(), history), Infinity)
  })
})
