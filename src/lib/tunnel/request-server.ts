/** The server of requests that travel on streams of a tunnel. The heads are in `request-head.ts`. */
import type { Duplex } from 'node:stream'

import type { Clock } from '../clock.ts'
import type { Exchange } from '../http/exchange.ts'
import { RequestExchange } from './request-exchange.ts'
import { decodeRequest, readHead } from './request-head.ts'

export interface RequestServerOptions {
  /** Handles an exchange. Its errors go to `onError`; the client gets 500, or a response that is broken off. */
  readonly serve: (exchange: Exchange) => Promise<void>
  readonly clock: Clock
  /** Protocols (lower case) for upgrades, such as `websocket`; other upgrade requests are served normally. */
  readonly upgrades: readonly string[]
  readonly onError: (error: unknown) => void
}

export interface RequestServer {
  /** Serves the request on a stream. */
  accept(stream: Duplex): void
  /** Refuses new requests, and breaks off those that are not complete after `graceMs`. */
  close(graceMs: number): Promise<void>
}

export function createRequestServer(options: RequestServerOptions): RequestServer {
  const upgrades = new Set(options.upgrades)
  const open = new Set<Duplex>()
  const emptied = Promise.withResolvers<void>()
  let isClosing = false
  const serve = async (stream: Duplex): Promise<void> => {
    const head = await readHead(stream)
    const exchange = new RequestExchange(stream, decodeRequest(head), upgrades)
    try {
      await options.serve(exchange)
    } catch (error) {
      options.onError(error)
      exchange.fail()
    }
  }
  return {
    accept(stream) {
      stream.on('error', () => undefined)
      if (isClosing) return void stream.destroy(new Error('The agent is stopping'))
      open.add(stream)
      stream.once('close', () => {
        open.delete(stream)
        if (isClosing && open.size === 0) emptied.resolve()
      })
      serve(stream).catch((error: unknown) => stream.destroy(error as Error))
    },
    async close(graceMs) {
      isClosing = true
      if (open.size === 0) return
      const timer = options.clock.after(graceMs, () => {
        for (const stream of open) stream.destroy(new Error('The agent is stopping'))
      })
      await emptied.promise
      timer.cancel()
    },
  }
}
