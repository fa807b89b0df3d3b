/** Detects clients that have stopped reading a response, by checking periodically whether buffered data has shrunk. */

/** A socket or an HTTP/2 stream. */
export interface Sending {
  /** How much waits to be sent. */
  readonly writableLength: number
  /** How much was handed over in all; where it is known, it tells a queue that was refilled from one that stands still. */
  readonly bytesWritten?: number
}

interface Progress {
  readonly waiting: number
  readonly written: number | undefined
  readonly sinceMs: number
}

/** Logs and terminals, whose readers may pause. */
const patient = new WeakSet<Sending>()

/** From now on the receiver may leave what it is sent unread for as long as it likes. Returns what ends that. */
export function bePatient(sending: Sending): () => void {
  patient.add(sending)
  return () => void patient.delete(sending)
}

export class Stalls {
  readonly #limitMs: number
  readonly #seen = new WeakMap<Sending, Progress>()

  constructor(limitMs: number) {
    this.#limitMs = limitMs
  }

  /** True if something has been waiting for this time and no byte was taken. To be called periodically. */
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
