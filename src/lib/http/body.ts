/** Reading a request's body as a whole, within bounds of size and time. */
import type { Readable } from 'node:stream'

import type { Clock } from '../clock.ts'
import { BodyError } from './exchange.ts'

export interface BodyLimits {
  readonly clock: Clock
  readonly limitBytes: number
  /** How long the whole body may take to arrive. */
  readonly timeoutMs: number
  /** What the client said, if it did: a body that says it is too large is not read at all. */
  readonly contentLength: string | undefined
}

/** Most bodies come in one piece, which is then the answer as it is; a list is kept only for those that do not. */
export function readWhole(source: Readable, limits: BodyLimits): Promise<Buffer> {
  const { clock, limitBytes, timeoutMs, contentLength } = limits
  return new Promise((resolve, reject) => {
    const tooLarge = (): BodyError => new BodyError('too-large', `The body is larger than ${limitBytes} bytes`)
    if (contentLength !== undefined && Number(contentLength) > limitBytes) return reject(tooLarge())
    let first: Buffer | undefined
    let rest: Buffer[] | undefined
    let size = 0
    const onData = (piece: Buffer): void => {
      size += piece.length
      if (size > limitBytes) return finish(() => reject(tooLarge()))
      if (first === undefined) first = piece
      else if (rest === undefined) rest = [first, piece]
      else rest.push(piece)
    }
    const onEnd = (): void => finish(() => resolve(rest === undefined ? (first ?? EMPTY) : Buffer.concat(rest, size)))
    const onGone = (): void =>
      finish(() => reject(new BodyError('gone', 'The client went away before its body was complete')))
    const timer = clock.after(timeoutMs, () => {
      finish(() => reject(new BodyError('timeout', `The body did not arrive within ${timeoutMs} ms`)))
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
    source.on('end', onEnd)
    source.on('close', onGone)
    source.on('error', onGone)
    if (source.destroyed && !source.readableEnded) onGone()
  })
}

const EMPTY: Buffer = Buffer.alloc(0)
