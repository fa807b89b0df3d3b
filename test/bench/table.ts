/** Prints results as a compact table with readable numbers. */

export interface Table {
  readonly title: string
  readonly columns: readonly string[]
  /** The first cell names the row; the others are figures. */
  readonly rows: readonly (readonly string[])[]
  /** Notes for readers of the figures. */
  readonly notes?: readonly string[]
  /** The result in one line, for the page of judges. */
  readonly result?: string
  /** The figures miss a goal, which the result names. The run ends with exit code 1. */
  readonly missesGoal?: boolean
}

/** A table before its figures are text, so that runs can be set side by side. */
export interface Figures {
  readonly title: string
  /** The owner of the figures; default: the reference. */
  readonly whose?: string
  readonly columns: readonly string[]
  readonly rows: readonly { readonly name: string; readonly values: readonly number[] }[]
}

export function toTable({ title, columns, rows }: Figures): Table {
  return { title, columns, rows: rows.map(({ name, values }) => [name, ...values.map(figure)]) }
}

/** Under each row of ours the others', each with ours as a multiple of it. */
export function besides(ours: Figures, ...others: readonly Figures[]): Table {
  const under = (name: string, values: readonly number[], { whose = 'reference', rows }: Figures): string[][] => {
    const theirs = rows.find((row) => row.name === name)?.values ?? []
    const ratios = values.map((value, at) => times(value / (theirs[at] ?? Number.NaN)))
    return [
      [`  ${whose}`, ...theirs.map(figure)],
      ['  ratio', ...ratios],
    ]
  }
  const rows = ours.rows.flatMap(({ name, values }) => [
    [name, ...values.map(figure)],
    ...others.flatMap((other) => under(name, values, other)),
  ])
  return { title: ours.title, columns: ours.columns, rows }
}

export function printTable({ title, columns, rows, notes = [] }: Table): string {
  const widths = columns.map((column, at) => Math.max(column.length, ...rows.map((row) => (row[at] ?? '').length)))
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join('  ')
      .trimEnd()
  const body = [columns, ...rows].map((row) => `  ${line(row)}\n`)
  return [`\n${title}\n`, ...body, ...notes.map((note) => `  ${note}\n`)].join('')
}

/** Three digits that mean something: `1.23`, `12.3`, `1,230,000`. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '-'
  if (value >= 100) return Number(value.toPrecision(3)).toLocaleString('en-US')
  return value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

/** `1.23x`. */
export function times(ratio: number): string {
  return Number.isFinite(ratio) ? `${figure(ratio)}x` : '-'
}
