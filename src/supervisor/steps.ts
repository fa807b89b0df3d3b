/**
 * Work on a machine as a table of steps, each of which knows whether it is done, how to do it and how to undo it. So a second
 * run does nothing, one that was interrupted goes on where it was, and undoing leaves nothing.
 */

export interface Step<C> {
  /** For people: `the unit`. */
  readonly name: string
  /** Looks at the machine, not at what was done before. */
  readonly isDone: (context: C) => Promise<boolean>
  readonly take: (context: C) => Promise<void>
  /** Also of what is done by half, or not at all. */
  readonly undo?: (context: C) => Promise<void>
}

/** In order, those that are not done; their names. Rejects with the first that fails. */
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

/** The last first. All are tried: what cannot be undone is said, and thrown at the end. */
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
  if (failures.length > 0) throw new AggregateError(failures, 'Not all could be undone: see what was said before')
}
