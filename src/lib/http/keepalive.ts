/** Pings on an HTTP/2 connection. They detect a peer that disappeared without closing the connection. */
import type { ClientHttp2Session } from 'node:http2'

import type { Clock, Timer } from '../clock.ts'

export interface KeepAlive {
  /** Time between two pings. */
  readonly intervalMs: number
  /** How long the answer may take; then the connection is destroyed. */
  readonly timeoutMs: number
}

/** Pings while `isBusy`, until the session closes. */
export function keepAlive(session: ClientHttp2Session, clock: Clock, options: KeepAlive & { isBusy(): boolean }): void {
  let timer: Timer
  const wait = (): void => {
    timer = clock.after(options.intervalMs, () => (options.isBusy() ? ping() : wait()), { background: true })
  }
  const ping = (): void => {
    timer = clock.after(options.timeoutMs, () => session.destroy(), { background: true })
    session.ping((error) => {
      timer.cancel()
      if (error === null && !session.destroyed) wait()
    })
  }
  wait()
  session.on('close', () => timer.cancel())
}
