/**
 * Shuffle sharding: of many queues each flow is dealt a hand of a few, always the same for the same flow. Two flows
 * seldom share a whole hand, so one that fills its queues leaves the others at least one that is not full.
 */
import { hash } from 'node:crypto'

/** What tells a flow from others, as upstream hashes it: both servers of a cluster deal it the same hand. */
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
    // The n-th of the cards that are left: each one drawn before, last first, moves it up when it lay below.
    hand.push(drawn.slice(0, -1).reduceRight((card, before) => (card >= before ? card + 1 : card), drawn.at(-1) ?? 0))
  }
  return hand
}
