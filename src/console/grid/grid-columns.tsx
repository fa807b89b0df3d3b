/** The columns of a list with their widths. */
import type { VNode } from 'preact'
import { useRef } from 'preact/hooks'

import type { Row } from '../lists/messages.ts'
import { widthsOf } from './column-widths.ts'
import type { VisibleColumn } from './visible-columns.ts'

export interface GridColumnsProps {
  readonly widths: readonly number[]
  /** The column that takes the space that is left; -1: none. */
  readonly wideAt: number
}

export function GridColumns({ widths, wideAt }: GridColumnsProps): VNode {
  return (
    <colgroup>
      <col class="cell-check" />
      {widths.map((width, at) => (
        <col key={at} style={at === wideAt ? {} : { width: pixelsOf(width) }} />
      ))}
    </colgroup>
  )
}

/** In characters, by the position of the column. */
export function useWidths(
  columns: readonly VisibleColumn[],
  rows: readonly Row[],
  showNamespace: boolean,
): readonly number[] {
  const known = useRef<{ readonly names: string; readonly widths: readonly number[] }>({ names: '', widths: [] })
  const names = columns.map(({ column }) => column.name).join()
  const before = known.current.names === names ? known.current.widths : undefined
  const widths = widthsOf(columns, rows, before)
  known.current = { names, widths }
  return showNamespace ? widths : widths.slice(1)
}

/** The space beside a text, for the borders of a state. */
const BESIDE_PX = 40
const CHECK_PX = 40

function pixelsOf(characters: number): string {
  return `calc(${characters}ch + ${BESIDE_PX}px)`
}

/** The least width of the table. */
export function sumOf(widths: readonly number[]): string {
  return `calc(${widths.reduce((sum, width) => sum + width, 0)}ch + ${BESIDE_PX * widths.length + CHECK_PX}px)`
}
