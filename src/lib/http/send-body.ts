/** Sends the body of a request of a client. */
import type { Writable } from 'node:stream'

import type { HttpRequest } from './client.ts'

/** Writes the body of a request with backpressure, and ends the request. */
export function sendBody(target: Writable, body: HttpRequest['body']): void {
  if (body === undefined || typeof body === 'string' || Buffer.isBuffer(body)) target.end(body)
  // A source that fails destroys the request with its error, which is how the caller learns of it.
  else
    pump(body, target).catch((error: unknown) =>
      target.destroy(error instanceof Error ? error : new Error(String(error))),
    )
}

async function pump(body: AsyncIterable<Buffer>, target: Writable): Promise<void> {
  for await (const piece of body) {
    if (target.destroyed) return
    if (!target.write(piece)) await drained(target)
  }
  target.end()
}

function drained(target: Writable): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      target.off('drain', done)
      target.off('close', done)
      resolve()
    }
    target.on('drain', done)
    target.on('close', done)
  })
}
