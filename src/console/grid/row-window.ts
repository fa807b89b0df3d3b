/** Computes which rows of a long list are in sight, and the height of those that are not in the document. */

const ROW_PX = 32
/** Rows above and below those in sight. */
const SPARE_ROWS = 12
/** Browsers limit the height of elements. In a longer list, a pixel of the scroll bar is more than a row. */
const MAX_HEIGHT_PX = 8_000_000

export interface Viewport {
  readonly total: number
  readonly scrollTop: number
  readonly clientHeight: number
}

export function rowsInSight({ total, scrollTop, clientHeight }: Viewport): {
  readonly from: number
  readonly count: number
} {
  const first = Math.floor(scrollTop / scaleOf(total) / ROW_PX)
  const from = Math.max(0, first - SPARE_ROWS)
  return { from, count: Math.ceil(clientHeight / ROW_PX) + 2 * SPARE_ROWS }
}

/** The head of the list covers the top of the viewport. */
const HEAD_PX = 34

/** The scroll position that shows a row, as near as possible to the present one. */
export function scrollTopFor(index: number, { total, scrollTop, clientHeight }: Viewport): number {
  const top = index * ROW_PX * scaleOf(total)
  const bottom = top + ROW_PX + HEAD_PX - clientHeight
  return Math.min(top, Math.max(bottom, scrollTop))
}

/** The heights in front of the rows and behind them. */
export function spacersOf({
  total,
  from,
  count,
}: {
  readonly total: number
  readonly from: number
  readonly count: number
}): readonly [before: number, after: number] {
  const before = from * ROW_PX * scaleOf(total)
  return [before, Math.max(0, total * ROW_PX * scaleOf(total) - before - count * ROW_PX)]
}

function scaleOf(total: number): number {
  return Math.min(1, MAX_HEIGHT_PX / Math.max(1, total * ROW_PX))
}
