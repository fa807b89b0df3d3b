/**
 * Reads and writes docs/judges.md, which lists the last result of each judge (see registry.ts). `npm run judges` reads
 * it, runs judges and writes it again.
 */
import { JUDGES, type Judge } from './registry.ts'

export interface LastRun {
  /** Abbreviated; the commit that was checked out, without uncommitted changes. */
  readonly commit: string
  /** YYYY-MM-DD. */
  readonly date: string
  readonly minutes: number
  readonly hasPassed: boolean
  /** The line of its output that states the result. */
  readonly result: string
  /** The commit of the last run that passed, if any has. */
  readonly lastGreen: string | undefined
}

export type Runs = ReadonlyMap<string, LastRun>

const HEAD = `# Judges

<!-- Written by \`npm run judges\`. -->

A judge compares hyperkube with something outside this repository, mostly upstream's own program, or measures it. The gate
does not run them: they need Go, root or an hour. \`npm run judges -- NAME\` runs one, \`--changed\` those whose code changed
since they last passed, \`--all\` all of them, the oldest result first. The registry is \`test/judges/registry.ts\`.

Each row is the last run of a judge, on two cores. Figures vary with the machine by a factor of three; ratios to upstream's
program in the same run are comparable.
`

const COLUMNS = '| judge | what it shows | commit | date | minutes | result |'

const ROW =
  /^\| `(?<name>[\w-]+)` \|.*\| (?<commit>\w+)(?: \(passed (?<green>\w+)\))? \| (?<date>[\d-]+) \| (?<minutes>[\d.]+) \| (?<mark>[✔✖]) (?<result>.*) \|$/

export function parsePage(page: string): Map<string, LastRun> {
  const runs = new Map<string, LastRun>()
  for (const line of page.split('\n')) {
    const { name, commit = '', green, date = '', minutes, mark, result = '' } = ROW.exec(line)?.groups ?? {}
    if (name === undefined) continue
    const hasPassed = mark === '✔'
    const lastGreen = hasPassed ? commit : green
    runs.set(name, { commit, date, minutes: Number(minutes), hasPassed, result, lastGreen })
  }
  return runs
}

export function formatPage(runs: Runs, judges: readonly Judge[] = JUDGES): string {
  const lines = [HEAD]
  for (const [area, members] of Map.groupBy(judges, (judge) => judge.area)) {
    lines.push(`## ${area}`, '', COLUMNS, '| --- | --- | --- | --- | --- | --- |')
    lines.push(...members.map((judge) => formatRow(judge, runs.get(judge.name))), '')
  }
  return lines.join('\n')
}

function formatRow({ name, shows }: Judge, run: LastRun | undefined): string {
  if (run === undefined) return `| \`${name}\` | ${shows} | | | | not run yet |`
  const { commit, date, minutes, hasPassed, result, lastGreen } = run
  const green = hasPassed || lastGreen === undefined ? '' : ` (passed ${lastGreen})`
  return `| \`${name}\` | ${shows} | ${commit}${green} | ${date} | ${minutes} | ${hasPassed ? '✔' : '✖'} ${result} |`
}
