/**
 * Runs a table of steps on a machine, each with a check, an action and its undo. A second run does nothing, an
 * interrupted run continues, and undoing removes everything.
 */

export interface Step<C> {
  /** The name for people: `the unit`. */
  readonly name: string
  /** Inspects the machine, not earlier results. */
  readonly isDone: (context: C) => Promise<boolean>
  readonly take: (context: C) => Promise<void>
  /** Also undoes a partial step, or none. */
  readonly undo?: (context: C) => Promise<void>
}

/** Runs the steps that are not done, in order, and returns their names. Rejects with the first failure. */
export async function takeSteps<C>(
  steps: readonly Step<C>[],
  context: C,
  say: (text: string) => void,
): Promise<string[]> {
  const taken: string[] = []
  for (const { name, isDone, take } of steps) {
    if (await isDone(context)) continue
    say(name)
    await take(context)
    taken.push(name)
  }
  return taken
}

/** Undoes in reverse order. Tries all; reports failures and throws at the end. */
export async function undoSteps<C>(steps: readonly Step<C>[], context: C, say: (text: string) => void): Promise<void> {
  const failures: unknown[] = []
  for (const { name, undo } of steps.toReversed()) {
    if (undo === undefined) continue
    say(`undo ${name}`)
    await undo(context).catch((error: unknown) => {
      say(`${name} stays: ${(error as Error).message}`)
      failures.push(error)
    })
  }
  if (failures.length > 0) throw new AggregateError(failures, 'Some steps could not be undone: see the messages above')
}
