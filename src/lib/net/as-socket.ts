/** Makes a Duplex stream usable as a socket of node:http; settings of TCP connections have no effect on it. */
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** Returns the same stream. */
export function asSocket(stream: Duplex): Socket {
  if (stream instanceof Socket) return stream
  const settings = {
    setKeepAlive: itself,
    setNoDelay: itself,
    setTimeout: itself,
    ref: itself,
    unref: itself,
    destroySoon,
  }
  return Object.assign(stream, settings) as unknown as Socket
}

function itself(this: Duplex): Duplex {
  return this
}

/** Destroys the stream when everything was written. */
function destroySoon(this: Duplex): void {
  if (this.writable) this.end()
  if (this.writableFinished) this.destroy()
  else this.once('finish', () => this.destroy())
}
