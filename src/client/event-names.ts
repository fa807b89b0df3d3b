/**
 * Names of events: that of the object and nanoseconds in hexadecimal, as upstream has them. Clocks here have milliseconds, so each source
 * counts on within them from a place of its own: two that speak of an object in the same moment do not meet.
 */
import { hash } from 'node:crypto'

const NANOS_PER_MS = 1_000_000

export class EventNames {
  #next: number

  /** `source` is who speaks. */
  constructor(source: string) {
    this.#next = hash('sha1', source, 'buffer').readUInt32BE()
  }

  nameOf(about: string, nowMs: number): string {
    const nanos = BigInt(Math.trunc(nowMs)) * BigInt(NANOS_PER_MS) + BigInt(this.#next++ % NANOS_PER_MS)
    return `${about}.${nanos.toString(16)}`
  }
}
