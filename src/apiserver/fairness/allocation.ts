/** Distributes the seats of a server among priority levels that could use more or fewer than their nominal share. */

export interface Claim {
  readonly target: number
  readonly lowest: number
  readonly highest: number
}

export interface Allocation {
  /** In the order of the claims; they add up to the total if the bounds allow it. */
  readonly seats: readonly number[]
  /** Each claim gets this fraction of its target, within its bounds. */
  readonly fairFraction: number
}

/** The minimal target, because leftover seats need a receiver. */
const MIN_TARGET = 0.001

/**
 * The fraction at which all shares, kept within their bounds, add up to `total`. The sum grows with the fraction and
 * bends only where a share meets a bound: the search finds the bend before it and then follows the straight line.
 */
export function allocate(total: number, claims: readonly Claim[]): Allocation {
  const wanted = claims.map(({ target, ...bounds }) => ({ ...bounds, target: Math.max(target, MIN_TARGET) }))
  const shareAt = (fraction: number) => wanted.map((claim) => clamp(fraction * claim.target, claim))
  const sumAt = (fraction: number): number => shareAt(fraction).reduce((sum, share) => sum + share, 0)
  const bends = wanted
    .flatMap(({ target, lowest, highest }) => [lowest / target, highest / target])
    .sort((a, b) => a - b)
  const at = firstWhere(bends.length, (index) => sumAt(bends[index] as number) >= total)
  const before = bends[Math.max(0, at - 1)] ?? 0
  const after = bends[Math.min(at, bends.length - 1)] ?? 0
  const [low, high] = [sumAt(before), sumAt(after)]
  const part = high > low ? Math.min(1, Math.max(0, (total - low) / (high - low))) : 0
  const fairFraction = before + part * (after - before)
  return { seats: shareAt(fairFraction), fairFraction }
}

function clamp(value: number, { lowest, highest }: Pick<Claim, 'lowest' | 'highest'>): number {
  return Math.max(lowest, Math.min(highest, value))
}

/** The first index for which `holds` is true, as for all later ones; `count` if there is none. */
function firstWhere(count: number, holds: (index: number) => boolean): number {
  let [low, high] = [0, count]
  while (low < high) {
    const middle = (low + high) >> 1
    if (holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}
