/** Computes the differences between two recordings of a scenario. */
import type { Recording } from './recording.ts'
import type { Allowance } from './scenario.ts'

export interface Verdict {
  /** Lines that only upstream's recording has (`-`), or only ours (`+`). */
  readonly differences: readonly string[]
  /** Reasons of differences that are allowed. */
  readonly reasons: ReadonlySet<string>
}

export function compare(allows: readonly Allowance[], theirs: Recording, ours: Recording): Verdict {
  const reasons = new Set<string>()
  const differences: string[] = []
  for (const part of ['objects', 'conditions', 'events', 'lost'] as const) {
    const lines = [
      ...without(theirs[part], ours[part]).map((line) => `- ${line}`),
      ...without(ours[part], theirs[part]).map((line) => `+ ${line}`),
    ]
    const uncounted = lines.map((line) => line.slice(1).replace(/ x\d+$/, ''))
    lines.forEach((line, at) => {
      const isOnlyCount = uncounted.some((other, where) => where !== at && other === uncounted[at])
      const allowed = allows.find((one) => one.line.test(line) && (one.isCount !== true || isOnlyCount))
      if (allowed === undefined) differences.push(line)
      else reasons.add(allowed.why)
    })
  }
  return { differences, reasons }
}

/** Lines of one that the other does not have. A line may be there several times. */
function without(lines: readonly string[], others: readonly string[]): string[] {
  const left = [...others]
  return lines.filter((line) => {
    const at = left.indexOf(line)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}
