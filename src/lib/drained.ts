/** Waits until a writable stream accepts more data. */
import type { Writable } from 'node:stream'

/** After `write` returned false: resolves when there is room again, or never will be. */
export function drained(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed) return resolve()
    const done = (): void => {
      stream.off('drain', done)
      stream.off('close', done)
      resolve()
    }
    stream.on('drain', done)
    stream.on('close', done)
  })
}
