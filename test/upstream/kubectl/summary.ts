/** Summarizes the results of a comparison by command and by reason. */
import type { Verdict } from './judge.ts'
import { LISTED } from './listed.ts'

interface Count {
  lines: number
  equal: number
  listed: number
  different: number
}

/** Commands whose second word is a command, too. */
const GROUPS: ReadonlySet<string> = new Set(
  'alpha auth certificate cluster-info completion config create kuberc plugin rollout set top'.split(' '),
)

/** The command that a line is about. */
function commandOf(args: readonly string[]): string {
  const words = args.filter((word) => !word.startsWith('-'))
  const [first = '(none)', second = ''] = words
  return GROUPS.has(first) && /^[a-z-]+$/.test(second) ? `${first} ${second}` : first
}

/** `isWhole`: every line was run, so a listed difference that did not occur is an error. */
export function summary(verdicts: readonly Verdict[], isWhole: boolean): { text: string; isGood: boolean } {
  const counts = new Map<string, Count>()
  const all: Count = { lines: 0, equal: 0, listed: 0, different: 0 }
  for (const verdict of verdicts) {
    const command = commandOf(verdict.args)
    const own = counts.get(command) ?? { lines: 0, equal: 0, listed: 0, different: 0 }
    counts.set(command, own)
    for (const count of [own, all]) {
      count.lines++
      count[outcomeOf(verdict)]++
    }
  }
  const rows = [...counts].sort(([a], [b]) => (a < b ? -1 : 1))
  const table = [['command', 'lines', 'equal', 'listed', 'different'], ...rows.map(row), row(['all', all])]
  const reasons = LISTED.map(
    ({ reason }) => [reason, verdicts.filter(({ listed }) => listed === reason).length] as const,
  )
  const idle = isWhole ? reasons.filter(([, count]) => count === 0) : []
  const notes = [
    ...reasons.filter(([, count]) => count > 0).map(([reason, count]) => `${count} listed: ${reason}`),
    ...idle.map(([reason]) => `no line needs it any more: ${reason}`),
  ]
  const text = `\n${table.map(aligned).join('\n')}\n${notes.map((note) => `${note}\n`).join('')}`
  return { text, isGood: all.different === 0 && idle.length === 0 }
}

function outcomeOf({ differences, listed }: Verdict): 'equal' | 'listed' | 'different' {
  if (differences.length === 0) return 'equal'
  return listed === undefined ? 'different' : 'listed'
}

function row([name, { lines, equal, listed, different }]: readonly [string, Count]): string[] {
  return [name, ...[lines, equal, listed, different].map(String)]
}

function aligned([name = '', ...numbers]: readonly string[]): string {
  return `${name.padEnd(28)}${numbers.map((number) => number.padStart(10)).join('')}`
}
