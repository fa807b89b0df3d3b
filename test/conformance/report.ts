/**
 * What a run found, and the page that remembers it: docs/conformance.md lists every conformance test with its last
 * result, and a run of some of them changes only their lines.
 */
import { CATALOG, entryOf, plainName } from './catalog.ts'

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

/** The results that a page remembers, by plain name. */
export function readPage(page: string): Map<string, Result> {
  const results = new Map<string, Result>()
  for (const [, mark, name = ''] of page.matchAll(/^- (\S) (.+)$/gm)) {
    const result = RESULTS.find((one) => MARKS[one] === mark)
    if (result !== undefined) results.set(name, result)
  }
  return results
}

/** The commit that a page says the last run was against. */
export function readCommit(page: string): string {
  return / against commit (.+?)\. The gate/.exec(page)?.[1] ?? 'none'
}

export interface Origin {
  /** Of the suite. */
  readonly version: string
  /** What it ran against last. */
  readonly commit: string
  /** How our controllers did beside upstream's server. */
  readonly reference: string
}

const REFERENCE = "Against upstream's kube-apiserver (`--reference`): "

/** What a page remembers of the last whole run beside upstream's server. */
export function readReference(page: string): string {
  const line = page.split('\n').find((one) => one.startsWith(REFERENCE))
  return line?.slice(REFERENCE.length, -1) ?? 'not run yet'
}

/** Why tests fail that cannot pass where the page is made, by plain name. */
const CAUSES: Readonly<Record<string, string>> = {
  'node: ImageVolume should succeed with pod and pull policy of Always':
    'volumes of images need containerd 2.1 or newer, Debian has 1.6',
}

/** `names` are the full names of all conformance tests of the suite, `results` the last result of each by plain name. */
export function writePage(
  { version, commit, reference }: Origin,
  names: readonly string[],
  results: ReadonlyMap<string, Result>,
): string {
  const groups = inGroups(names)
  const passed = names.filter((name) => isPassed(results.get(plainName(name)))).length
  const lines = [
    '# Conformance',
    '',
    '<!-- Written by `npm run conformance`. -->',
    '',
    `Upstream's own tests, e2e.test ${version}, against \`hyperkube up\`: **${passed} of ${names.length} pass**. It has`,
    'its API server, controllers and scheduler in one process, with nodes as tests need them: two simulated ones without containers;',
    'this machine, with containerd and images made locally (`test/images`); for networks a second node beside it, in a network namespace.',
    `${REFERENCE}${reference}.`,
    '',
    "Each line is a test's last result:",
    `${MARKS.passed} passed, ${MARKS.flaky} passed when tried again (up to twice), ${MARKS.failed} failed,`,
    `${MARKS['not run']} not run yet. The last run was against commit ${commit}. The gate (\`.ci/run\`) runs every test that has passed`,
    'and needs no containers, but for one that waits for five minutes, and fails when one of them fails.',
    '',
    '| group | tests | passed | failed |',
    '| --- | --- | --- | --- |',
    ...groups.map(([group, tests]) => summaryRow(group, tests, results)),
  ]
  for (const [group, tests] of groups) {
    lines.push('', `## ${group}`, '')
    for (const test of tests) {
      const result = results.get(test)
      lines.push(`- ${MARKS[result ?? 'not run']} ${test}`)
      if (result === 'failed' && CAUSES[test] !== undefined) lines.push(`  (${CAUSES[test]})`)
    }
  }
  return `${lines.join('\n')}\n`
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

function summaryRow(group: string, tests: readonly string[], results: ReadonlyMap<string, Result>): string {
  const passed = tests.filter((test) => isPassed(results.get(test))).length
  const failed = tests.filter((test) => results.get(test) === 'failed').length
  return `| ${group} | ${tests.length} | ${passed} | ${failed} |`
}

function isPassed(result: Result | undefined): boolean {
  return result === 'passed' || result === 'flaky'
}
