/** Reads the whole body of a request, within limits of size and time, and sends one with backpressure. */
import type { Readable, Writable } from 'node:stream'

import type { Deadlines } from '../deadlines.ts'
import { drained } from '../drained.ts'
import { BodyError, type Growing } from './exchange.ts'

export interface BodyLimits {
  readonly deadlines: Deadlines
  readonly limitBytes: number
  /** How long the whole body may take to arrive. */
  readonly timeoutMs: number
  /** The announced length, if any: a body that announces too much is not read at all. */
  readonly contentLength: string | undefined
  readonly growing: Growing | undefined
  /** Called first with the reason why there is no body. */
  readonly failed?: () => void
}

/** Most bodies come in one piece, which is returned without copying; only others need a list. */
export function readWhole(source: Readable, limits: BodyLimits): Promise<Buffer> {
  const { deadlines, limitBytes, timeoutMs, contentLength, growing } = limits
  return new Promise((resolve, reject) => {
    const tooLarge = (): BodyError => bodyTooLarge(limitBytes)
    const fail = (error: BodyError): void => {
      limits.failed?.()
      reject(error)
    }
    if (contentLength !== undefined && Number(contentLength) > limitBytes) return fail(tooLarge())
    let first: Buffer | undefined
    let rest: Buffer[] | undefined
    let size = 0
    const onData = (piece: Buffer): void => {
      size += piece.length
      if (size > limitBytes) return finish(() => fail(tooLarge()))
      if (first === undefined) first = piece
      else if (rest === undefined) rest = [first, piece]
      else rest.push(piece)
    }
    const onEnd = (): void => finish(() => resolve(rest === undefined ? (first ?? EMPTY) : Buffer.concat(rest, size)))
    const onGone = (): void =>
      finish(() => fail(new BodyError('gone', 'The client went away before its body was complete')))
    const timer = deadlines(timeoutMs, () => {
      finish(() => fail(new BodyError('timeout', `The body did not arrive within ${timeoutMs} ms`)))
    })
    const finish = (settle: () => void): void => {
      timer.cancel()
      source.off('data', onData)
      source.off('end', onEnd)
      source.off('close', onGone)
      source.off('error', onGone)
      if (!source.readableEnded) source.pause()
      settle()
    }
    source.on('data', onData)
    if (growing !== undefined) askWhenLarge(source, growing, (error) => finish(() => reject(error)))
    source.on('end', onEnd)
    source.on('close', onGone)
    source.on('error', onGone)
    if (source.destroyed && !source.readableEnded) onGone()
  })
}

function askWhenLarge(source: Readable, growing: Growing, refuse: (error: Error) => void): void {
  let size = 0
  const onData = (piece: Buffer): void => {
    size += piece.length
    if (size <= growing.freeBytes) return
    source.off('data', onData)
    source.pause()
    // There is no listener any more if the client has gone or its time was over.
    growing.mayGrow().then(() => source.listenerCount('data') > 0 && source.resume(), refuse)
  }
  source.on('data', onData)
}

/** The same for a body that is read piece by piece, without a limit of time. */
export async function collectBody(
  body: AsyncIterable<Buffer>,
  limitBytes: number,
  growing: Growing | undefined,
): Promise<Buffer> {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of body) {
    const isFree = growing === undefined || size > growing.freeBytes || size + piece.length <= growing.freeBytes
    size += piece.length
    if (size > limitBytes) throw bodyTooLarge(limitBytes)
    if (!isFree) await growing.mayGrow()
    pieces.push(piece)
  }
  return Buffer.concat(pieces, size)
}

export function bodyTooLarge(limitBytes: number): BodyError {
  return new BodyError('too-large', `The body is larger than ${limitBytes} bytes`)
}

const EMPTY: Buffer = Buffer.alloc(0)

export type OutgoingBody = string | Buffer | AsyncIterable<Buffer> | undefined

/** Writes the body of a request with backpressure, and ends the request. */
export function sendBody(target: Writable, body: OutgoingBody): void {
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
