/**
 * Tables of commands, which programs and kubectl share: look-up, suggestions after typing errors, and the command lists
 * of help texts.
 */
/** A line in a table of commands: enough for help and dispatch without loading the command. */
export interface CommandRow<T> {
  readonly name: string
  readonly aliases?: readonly string[]
  /** One line, for the list of commands. */
  readonly short: string
  readonly hidden?: boolean
  /** Other names that suggest this command. */
  readonly suggestFor?: readonly string[]
  load(): Promise<T>
}

type Row = Omit<CommandRow<unknown>, 'load'>

/** The row that answers to `name`, by its own name or an alias. */
export function findCommand<R extends Row>(rows: readonly R[], name: string): R | undefined {
  return rows.find((row) => row.name === name || row.aliases?.includes(name))
}

/** The message for a name that no row answers to; `path` are the words before it. */
export async function unknownCommandText(path: string, name: string, rows: readonly Row[] = []): Promise<string> {
  const { nearest } = await import('./nearest.ts')
  const shown = rows.filter(({ hidden }) => hidden !== true)
  const close = [
    ...nearest(
      name,
      shown.flatMap((row) => [row.name, ...(row.aliases ?? [])]),
    ),
    ...shown.filter(({ suggestFor = [] }) => suggestFor.includes(name)).map((row) => row.name),
  ]
  const hint = close.length === 0 ? '' : `\n\nDid you mean this?\n${close.map((each) => `\t${each}\n`).join('')}`
  return `unknown command "${name}" for "${path}"${hint}`
}

/** One line for each row: the name in a column of `width`, and the description. */
export function commandLines<R extends Row>(
  rows: readonly R[],
  width: number,
  describe: (row: R) => string = ({ short }) => short,
): string[] {
  return rows.map((row) => `  ${row.name.padEnd(width)} ${describe(row)}`)
}

/** The width of the column of names. */
export function nameWidth(rows: readonly Row[]): number {
  return Math.max(...rows.map(({ name }) => name.length)) + 1
}
