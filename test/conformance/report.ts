/**
 * Reads and writes docs/conformance.md, which lists the result, commit and date of the last run of each conformance
 * test. A run of some tests changes only their lines.
 */
import { CATALOG, entryOf, type Need, plainName } from './catalog.ts'

/** `flaky`: it failed, and passed when it was tried again. */
export type Result = 'passed' | 'flaky' | 'failed'

export interface TestRun {
  readonly name: string
  readonly result: Result
  readonly seconds: number
  /** Why it failed, as ginkgo says it. */
  readonly message: string
}

/** Ginkgo's JSON report, as far as it is read here. */
interface Suite {
  readonly SpecReports: readonly Spec[] | null
}

interface Spec {
  readonly ContainerHierarchyTexts: readonly string[] | null
  readonly LeafNodeType: string
  readonly LeafNodeText: string
  readonly State: string
  readonly RunTime: number
  readonly Failure?: { readonly Message?: string }
}

/** The names of all tests in a report, run or not. */
export function testNames(report: string): string[] {
  return specs(report).map(nameOf)
}

/** The tests of a report that were run. A test that was begun and not ended (timed out, interrupted) has failed. */
export function testRuns(report: string): TestRun[] {
  return specs(report)
    .filter(({ State }) => State !== 'skipped' && State !== 'pending' && State !== '')
    .map((spec) => ({
      name: nameOf(spec),
      result: spec.State === 'passed' ? 'passed' : 'failed',
      seconds: spec.RunTime / 1e9,
      message: spec.Failure?.Message ?? '',
    }))
}

function specs(report: string): Spec[] {
  const suites = JSON.parse(report) as readonly Suite[]
  return suites.flatMap(({ SpecReports }) => SpecReports ?? []).filter(({ LeafNodeType }) => LeafNodeType === 'It')
}

function nameOf({ ContainerHierarchyTexts, LeafNodeText }: Spec): string {
  return [...(ContainerHierarchyTexts ?? []), LeafNodeText].join(' ')
}

const MARKS: Readonly<Record<Result | 'not run', string>> = { passed: '✔', flaky: '≈', failed: '✖', 'not run': '·' }

const RESULTS = ['passed', 'flaky', 'failed'] as const

/** The last run of one test, as the page keeps it. */
export interface LastResult {
  readonly result: Result
  /** The commit under test; empty on old pages without commits. */
  readonly commit: string
  /** YYYY-MM-DD. */
  readonly date: string
}

const LINE = /^- (\S) (.+?)(?: \(([0-9a-f]{7,40}(?: with changes)?), (\d{4}-\d\d-\d\d)\))?$/gm

/** The results that a page keeps, by plain name. */
export function readPage(page: string): Map<string, LastResult> {
  const results = new Map<string, LastResult>()
  for (const [, mark, name = '', commit = '', date = ''] of page.matchAll(LINE)) {
    const result = RESULTS.find((one) => MARKS[one] === mark)
    if (result !== undefined) results.set(name, { result, commit, date })
  }
  return results
}

export interface Origin {
  /** Of the suite. */
  readonly version: string
  /** How our controllers did beside upstream's server. */
  readonly reference: string
}

const REFERENCE = "Against upstream's kube-apiserver (`--reference`): "

/** The line about the last complete run with upstream's server. */
export function readReference(page: string): string {
  const line = page.split('\n').find((one) => one.startsWith(REFERENCE))
  return line?.slice(REFERENCE.length, -1) ?? 'not run yet'
}

/** Additional requirements of single tests, by name without tags. */
const CONDITIONS: Readonly<Record<string, string>> = {
  'node: ImageVolume should succeed with pod and pull policy of Always':
    'needs containerd 2.1 or newer; Debian has 1.6',
}

/** The clusters that the tests run on, with what they need at least. */
const CLUSTERS: readonly (readonly [cluster: string, needs: readonly Need[]])[] = [
  ['two simulated nodes, without containers', ['api', 'controllers']],
  ['one machine with containerd and images made locally (`test/images`)', ['kubelet']],
  ['two nodes with containerd, the second in a network namespace', ['network', 'multinode']],
]

/** `names` are the full names of all conformance tests of the suite, `results` the last result of each by plain name. */
export function writePage(
  { version, reference }: Origin,
  names: readonly string[],
  results: ReadonlyMap<string, LastResult>,
): string {
  const groups = inGroups(names)
  const passed = names.filter((name) => isPassed(results.get(plainName(name)))).length
  const lines = [
    '# Conformance',
    '',
    '<!-- Written by `npm run conformance`. -->',
    '',
    `Upstream's own tests, e2e.test ${version}, against \`hyperkube up\`: **${passed} of ${names.length} pass**. The API server, the`,
    'controllers and the scheduler run in one process. The nodes differ with what a test needs:',
    '',
    ...CLUSTERS.map(([cluster, needs]) => `- ${countWith(names, needs)} tests run on ${cluster}`),
    '',
    `${REFERENCE}${reference}.`,
    '',
    `Each line is the last run of a test, with its commit and date: ${MARKS.passed} passed, ${MARKS.flaky} passed when tried again`,
    `(up to twice), ${MARKS.failed} failed, ${MARKS['not run']} not run yet. The gate (\`.ci/run\`) runs every test that has passed and needs no`,
    'containers, except for one that waits five minutes, and fails when one of them fails.',
    '',
    '| commit | date | tests |',
    '| --- | --- | --- |',
    ...commitRows(names, results),
    '',
    '| group | tests | passed | failed |',
    '| --- | --- | --- | --- |',
    ...groups.map(([group, tests]) => summaryRow(group, tests, results)),
  ]
  for (const [group, tests] of groups) {
    lines.push('', `## ${group}`, '')
    for (const test of tests) {
      lines.push(testLine(test, results.get(test)))
      if (CONDITIONS[test] !== undefined) lines.push(`  (${CONDITIONS[test]})`)
    }
  }
  return `${lines.join('\n')}\n`
}

function testLine(test: string, last: LastResult | undefined): string {
  const origin = last === undefined || last.commit === '' ? '' : ` (${last.commit}, ${last.date})`
  return `- ${MARKS[last?.result ?? 'not run']} ${test}${origin}`
}

function countWith(names: readonly string[], needs: readonly Need[]): number {
  return names.filter((name) => needs.includes(entryOf(name)?.needs ?? 'api')).length
}

/** How many tests last ran at which commit, the oldest first. */
function commitRows(names: readonly string[], results: ReadonlyMap<string, LastResult>): string[] {
  const last = names.flatMap((name) => results.get(plainName(name)) ?? [])
  const byOrigin = Map.groupBy(last, ({ commit, date }) => (commit === '' ? 'not recorded | ' : `${commit} | ${date}`))
  return [...byOrigin]
    .toSorted(([, [a]], [, [b]]) => ((a?.date ?? '') < (b?.date ?? '') ? -1 : 1))
    .map(([origin, tests]) => `| ${origin} | ${tests.length} |`)
}

/** Plain names by group, groups as the catalog has them and names in their order. */
export function inGroups(names: readonly string[]): [group: string, tests: string[]][] {
  const groups = new Map<string, string[]>(CATALOG.map(({ group }) => [group, []]))
  for (const name of names) {
    const group = entryOf(name)?.group ?? 'other'
    groups.set(group, [...(groups.get(group) ?? []), plainName(name)])
  }
  return [...groups].filter(([, tests]) => tests.length > 0).map(([group, tests]) => [group, tests.sort()])
}

function summaryRow(group: string, tests: readonly string[], results: ReadonlyMap<string, LastResult>): string {
  const passed = tests.filter((test) => isPassed(results.get(test))).length
  const failed = tests.filter((test) => results.get(test)?.result === 'failed').length
  return `| ${group} | ${tests.length} | ${passed} | ${failed} |`
}

function isPassed(last: LastResult | undefined): boolean {
  return last !== undefined && last.result !== 'failed'
}
