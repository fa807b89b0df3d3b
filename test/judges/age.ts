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
export type History = readonly { readonly commit: string; readonly files: readonly string[] }[]

/** The history of the checkout; undefined where git or the history is missing. */
export function readHistory(): History | undefined {
  const options = { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 28 } as const
  const { status, stdout } = spawnSync('git', ['log', '--format=commit %H', '--name-only'], options)
  if (status !== 0 || stdout === '') return undefined
  return stdout
    .split(/^commit /m)
    .slice(1)
    .map((text) => {
      const [commit = '', ...files] = text.split('\n').filter((line) => line !== '')
      return { commit, files }
    })
}

/**
 * How many commits have changed the rooms of a judge since its last green run; Infinity if it has never passed or the
 * history does not have that commit.
 */
export function commitsSince(judge: Judge, runs: Runs, history: History): number {
  const green = runs.get(judge.name)?.lastGreen
  if (green === undefined) return Infinity
  const folders = judge.rooms.map((room) => `src/${room}/`)
  let changed = 0
  for (const { commit, files } of history) {
    if (commit.startsWith(green)) return changed
    if (files.some((file) => folders.some((folder) => file.startsWith(folder)))) changed++
  }
  return Infinity
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
