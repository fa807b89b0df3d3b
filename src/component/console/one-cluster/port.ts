/**
 * Opens the port of the console of one cluster, on loopback only. Until the first connection it is only a listening
 * socket, which costs the program neither time nor memory.
 */
import type { Socket } from 'node:net'

import { bind, type Listener } from '#lib/http/listen.ts'
import { createHttpServer, type HttpServer } from '#lib/http/server.ts'

import type { ConsoleHandler } from './handler.ts'
import { LoginCode } from './login-code.ts'
import type { ConsoleOptions } from './options.ts'

export interface ConsolePort {
  readonly port: number
  /** The link that logs a browser in, once. */
  readonly link: string
  close(): Promise<void>
}

const GRACE_MS = 500
/** Of all browsers together. */
const MAX_CONNECTIONS = 1000
/** Uploads may take any time. */
const REQUEST_TIMEOUT_MS = 0

export async function openConsolePort(options: ConsoleOptions): Promise<ConsolePort> {
  const { clock, random, onLink } = options
  const listeners = await listenOnLoopback(options.port)
  const port = portOf(listeners[0])
  const code = new LoginCode(clock, random)
  const linkOf = (): string => `http://127.0.0.1:${port}/ui/login?code=${code.current}`
  const onLogin = (): Promise<void> =>
    onLink(linkOf()).catch((error: unknown) => options.log.error(error, 'Failed to write the link of the console'))
  const server = new LazyServer(options, () =>
    // Loaded with the first request.
    import('./handler.ts').then(({ createConsoleHandler }) => createConsoleHandler(options, { port, code, onLogin })),
  )
  for (const listener of listeners) listener.accept((socket) => server.take(socket))
  await onLogin()
  return {
    port,
    get link() {
      return linkOf()
    },
    async close() {
      for (const listener of listeners) listener.close()
      await server.close()
    },
  }
}

/** IPv4, and IPv6 with the same port if the machine has it. */
async function listenOnLoopback(wanted: number): Promise<readonly [Listener, ...Listener[]]> {
  const first = await bind({ host: '127.0.0.1', port: wanted }).catch((error: NodeJS.ErrnoException) => {
    if (wanted === 0 || !['EADDRINUSE', 'EACCES'].includes(error.code ?? '')) throw error
    return bind({ host: '127.0.0.1', port: 0 })
  })
  const second = await bind({ host: '::1', port: portOf(first) }).catch(() => undefined)
  return second === undefined ? [first] : [first, second]
}

function portOf({ address }: Listener): number {
  if (!('port' in address)) throw new Error('The console listens on no port')
  return address.port
}

/** An HTTP server that exists from the first connection on. */
class LazyServer {
  readonly #options: ConsoleOptions
  readonly #load: () => Promise<ConsoleHandler>
  #handler: Promise<ConsoleHandler> | undefined
  #server: HttpServer | undefined
  #accept: (socket: Socket) => void = () => undefined

  constructor(options: ConsoleOptions, load: () => Promise<ConsoleHandler>) {
    this.#options = options
    this.#load = load
  }

  take(socket: Socket): void {
    this.#server ??= this.#create()
    this.#accept(socket)
  }

  async close(): Promise<void> {
    const handler = await this.#handler?.catch(() => undefined)
    await handler?.close()
    await this.#server?.drain(GRACE_MS)
  }

  #create(): HttpServer {
    const { clock, log } = this.#options
    const server = createHttpServer({
      clock,
      upgrades: ['websocket', 'spdy/3.1'],
      limits: {
        maxConnections: MAX_CONNECTIONS,
        maxConnectionsPerAddress: MAX_CONNECTIONS,
        requestTimeoutMs: REQUEST_TIMEOUT_MS,
      },
      onError: (error, exchange) => {
        if (!exchange.isAnswered && !exchange.signal.aborted)
          log.error(error, 'Failed to serve a request of the console')
      },
      serve: async (exchange) => {
        this.#handler ??= this.#load()
        const handler = await this.#handler
        await handler.serve(exchange)
      },
    })
    server.accept({
      address: { path: 'console' },
      accept: (take) => (this.#accept = take),
      close: () => undefined,
    })
    return server
  }
}
