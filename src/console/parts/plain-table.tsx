/** A table of few rows, drawn whole. It scrolls sideways on small screens. */
import type { ComponentChildren, VNode } from 'preact'

/** Long tables are cut: the console shows objects, and exports are for programs. */
const MAX_ROWS = 500

export interface PlainTableProps<R> {
  /** For readers of the screen. */
  readonly label: string
  readonly columns: readonly string[]
  readonly rows: readonly R[]
  readonly cells: (row: R) => readonly ComponentChildren[]
  /** Default: the number of the row. */
  readonly keyOf?: (row: R) => string
}

export function PlainTable<R>({ label, columns, rows, cells, keyOf }: PlainTableProps<R>): VNode {
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label={label}>
        <table class="plain">
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column} scope="col">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, MAX_ROWS).map((row, at) => (
              <tr key={keyOf?.(row) ?? at}>
                {cells(row).map((cell, column) => (
                  <td key={column}>{cell}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > MAX_ROWS && <p class="muted">{`The first ${MAX_ROWS} of ${rows.length.toLocaleString('en')}`}</p>}
    </>
  )
}
