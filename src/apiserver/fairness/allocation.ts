/** How the seats of a server are shared among levels that could use more or less of them than they are entitled to. */

export interface Claim {
  readonly target: number
  readonly lowest: number
  readonly highest: number
}

export interface Allocation {
  /** In the order of the claims; they add up to the total, as far as bounds allow. */
  readonly seats: readonly number[]
  /** Each claim has this fraction of its target, unless one of its bounds is in the way. */
  readonly fairFraction: number
}

/** Nobody wants nothing: what is left over has to go somewhere. */
const MIN_TARGET = 0.001

/**
 * The one fraction at which everybody's share, kept within its bounds, adds up to `total`. The sum grows with the
 * fraction and bends only where somebody meets a bound: the bend before it is found, then the straight line is followed.
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

/** The first index for which `holds`, which holds for all after it too; `count` if there is none. */
function firstWhere(count: number, holds: (index: number) => boolean): number {
  let [low, high] = [0, count]
  while (low < high) {
    const middle = (low + high) >> 1
    if (holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}
