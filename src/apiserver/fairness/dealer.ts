/**
 * Shuffle sharding: assigns a few fixed queues to each flow. Two flows seldom have exactly the same queues, so a busy
 * flow seldom blocks another.
 */
import { hash } from 'node:crypto'

/** The hash of a flow, the same as upstream's: all servers of a cluster deal the same hand. */
export function flowHash(schema: string, distinguisher: string): bigint {
  return hash('sha256', `${schema}\0${distinguisher}`, 'buffer').readBigUInt64LE()
}

/** The numbers of `handSize` different queues below `deckSize`. */
export function deal(flow: bigint, deckSize: number, handSize: number): readonly number[] {
  let rest = flow
  const drawn: number[] = []
  const hand: number[] = []
  for (let left = deckSize; left > deckSize - handSize; left--) {
    drawn.push(Number(rest % BigInt(left)))
    rest /= BigInt(left)
    // The n-th remaining card: each earlier card, last first, moves it up if it was below.
    hand.push(drawn.slice(0, -1).reduceRight((card, before) => (card >= before ? card + 1 : card), drawn.at(-1) ?? 0))
  }
  return hand
}
