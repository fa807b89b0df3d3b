/**
 * The first index from `low` to before `high` for which the condition is false, by binary search; `high` if there is none.
 * The condition must be true for a beginning of the range and false for the rest.
 */
export function partitionPoint(low: number, high: number, holds: (index: number) => boolean): number {
  while (low < high) {
    const middle = (low + high) >>> 1
    if (holds(middle)) low = middle + 1
    else high = middle
  }
  return low
}
