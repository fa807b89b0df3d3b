/**
 * Generates names of events as upstream does: the object's name and nanoseconds in hexadecimal. Our clocks have only
 * milliseconds, so each source counts the nanoseconds up from a different start, to avoid collisions.
 */
import { hash } from 'node:crypto'

const NANOS_PER_MS = 1_000_000

export class EventNames {
  #next: number

  /** `source` identifies the reporter. */
  constructor(source: string) {
    this.#next = hash('sha1', source, 'buffer').readUInt32BE()
  }

  nameOf(about: string, nowMs: number): string {
    const nanos = BigInt(Math.trunc(nowMs)) * BigInt(NANOS_PER_MS) + BigInt(this.#next++ % NANOS_PER_MS)
    return `${about}.${nanos.toString(16)}`
  }
}
