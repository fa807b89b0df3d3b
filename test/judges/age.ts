/**
 * Computes the age of a judge's last result: the number of later commits that changed the code under test. A judge is a
 * script that compares hyperkube with something external.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { parsePage, type Runs } from './page.ts'
import { JUDGES, type Judge } from './registry.ts'

const ROOT = join(import.meta.dirname, '..', '..')
export const PAGE: string = join(ROOT, 'docs', 'judges.md')

/** The gate names a judge when more commits than this have changed its rooms since it last passed. */
const TOLERATED_COMMITS = 50

/** Commits from the newest on, each with the files it changed. */
export type History = readonly {
  readonly commit: string
  /** YYYY-MM-DD. */
  readonly date: string
  readonly files: readonly string[]
}[]

/** The history of the checkout; undefined where git or the history is missing. */
export function readHistory(): History | undefined {
  const options = { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 28 } as const
  const { status, stdout } = spawnSync('git', ['log', '--format=commit %H %cs', '--name-only'], options)
  if (status !== 0 || stdout === '') return undefined
  return stdout
    .split(/^commit /m)
    .slice(1)
    .map((text) => {
      const [head = '', ...files] = text.split('\n').filter((line) => line !== '')
      const [commit = '', date = ''] = head.split(' ')
      return { commit, date, files }
    })
}

/**
 * How many commits have changed the rooms of a judge since its last green run; Infinity if it has never passed. If the
 * history does not have that commit any more, because it was squashed, the commits of later days count.
 */
export function commitsSince(judge: Judge, runs: Runs, history: History): number {
  const { lastGreen: green, date: ranOn = '', hasPassed = false } = runs.get(judge.name) ?? {}
  if (green === undefined) return Infinity
  const folders = judge.rooms.map((room) => `src/${room}/`)
  const isChange = ({ files }: History[number]): boolean =>
    files.some((file) => folders.some((folder) => file.startsWith(folder)))
  const at = history.findIndex(({ commit }) => commit.startsWith(green))
  if (at >= 0) return history.slice(0, at).filter(isChange).length
  return hasPassed ? history.filter((entry) => entry.date > ranOn && isChange(entry)).length : Infinity
}

/** Lines for the gate: the judges whose results are too old, and how to run them. */
export function describeOverdueJudges(): string[] {
  const history = readHistory()
  if (history === undefined) return []
  const runs = parsePage(readFileSync(PAGE, 'utf8'))
  const overdue = JUDGES.map((judge) => ({ name: judge.name, age: commitsSince(judge, runs, history) }))
    .filter(({ age }) => age > TOLERATED_COMMITS)
    .map(({ name, age }) => `${name} (${age === Infinity ? 'never passed' : `${age} commits`})`)
  if (overdue.length === 0) return []
  return [`! judges older than their code by more than ${TOLERATED_COMMITS} commits: ${overdue.join(', ')}`]
}
