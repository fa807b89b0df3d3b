/** Receivers that have stopped reading: what waits to be sent to them is looked at now and then, and must have moved. */

/** A socket or an HTTP/2 stream. */
export interface Sending {
  /** How much waits to be sent. */
  readonly writableLength: number
  /** How much was handed over in all; where it is known, it tells a queue that was refilled from one that stands still. */
  readonly bytesWritten?: number
}

interface Seen {
  readonly waiting: number
  readonly written: number | undefined
  readonly sinceMs: number
}

/** People look at logs and terminals when they like: those who may take their time. */
const patient = new WeakSet<Sending>()

/** From now on the receiver may leave what it is sent unread for as long as it likes. Returns what ends that. */
export function bePatient(sending: Sending): () => void {
  patient.add(sending)
  return () => void patient.delete(sending)
}

export class Stalls {
  readonly #limitMs: number
  readonly #seen = new WeakMap<Sending, Seen>()

  constructor(limitMs: number) {
    this.#limitMs = limitMs
  }

  /** True when something has been waiting for so long and not a byte of it was taken. To be asked again and again. */
  isStalled(sending: Sending, nowMs: number): boolean {
    const { writableLength: waiting, bytesWritten: written } = sending
    if (waiting === 0 || patient.has(sending)) {
      this.#seen.delete(sending)
      return false
    }
    const last = this.#seen.get(sending)
    if (last?.waiting === waiting && last.written === written) return nowMs - last.sinceMs >= this.#limitMs
    this.#seen.set(sending, { waiting, written, sinceMs: nowMs })
    return false
  }
}
