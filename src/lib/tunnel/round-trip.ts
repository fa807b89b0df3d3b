/** Measures the round-trip time of a tunnel with probes and keeps the shortest one. */
import type { Clock } from '../clock.ts'

const PROBE_EVERY_MS = 1000
/** The first answer may have waited for code to be loaded. */
const FIRST_PROBES = 4

export class RoundTrip {
  readonly #clock: Clock
  readonly #send: (body: Buffer) => void
  #sequence = 0
  #sentAtMs = -Infinity
  #isOpen = false
  #shortestMs = 0

  constructor(clock: Clock, send: (body: Buffer) => void) {
    this.#clock = clock
    this.#send = send
  }

  /** 0 until the first answer. Probes again if the last probe is old. */
  get shortestMs(): number {
    this.refresh()
    return this.#shortestMs
  }

  /** The time since the last probe was sent, if it has no answer yet; otherwise 0. */
  get waitingMs(): number {
    return this.#isOpen ? this.#clock.elapsed() - this.#sentAtMs : 0
  }

  /** Probes again if the last probe is old and was answered. */
  refresh(): void {
    if (!this.#isOpen && this.#clock.elapsed() - this.#sentAtMs >= PROBE_EVERY_MS) this.probe()
  }

  probe(): void {
    this.#isOpen = true
    this.#sentAtMs = this.#clock.elapsed()
    this.#sequence = (this.#sequence + 1) >>> 0
    const body = Buffer.alloc(4)
    body.writeUInt32BE(this.#sequence)
    this.#send(body)
  }

  answered(body: Buffer): void {
    if (!this.#isOpen || body.length !== 4 || body.readUInt32BE() !== this.#sequence) return
    this.#isOpen = false
    const tookMs = this.#clock.elapsed() - this.#sentAtMs
    this.#shortestMs = this.#shortestMs === 0 ? tookMs : Math.min(this.#shortestMs, tookMs)
    if (this.#sequence < FIRST_PROBES) this.probe()
  }
}
