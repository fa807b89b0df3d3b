/**
 * One address for servers that are alike: each connection goes to the one with the fewest, among those that accepted when they
 * were last asked. One that does not accept is left out until it does, and a connection to it goes to the next. One that does not
 * even refuse is on a machine that is off or cut off: connections to it are ended, as it never will, and who had them asks again.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { pipeline } from 'node:stream'

import type { Clock, Timer } from './clock.ts'

export interface TcpServer {
  readonly host: string
  readonly port: number
}

export interface BalancerOptions {
  readonly listen: TcpServer
  readonly servers: readonly TcpServer[]
  readonly clock: Clock
  /** For a connection to be accepted. */
  readonly connectMs?: number
  /** Between two looks at all servers. */
  readonly lookMs?: number
}

export interface Balancer {
  /** The one that was asked for, or the one that was given for 0. */
  readonly port: number
}

interface Target extends TcpServer {
  isUp: boolean
  connections: number
  readonly sockets: Set<Socket>
}

/** Long enough for a packet that got lost to be sent again. */
const CONNECT_MS = 2000
const LOOK_MS = 1000

/** Resolves when it listens. Ends with `closing`, and all connections with it. */
export async function startBalancer(options: BalancerOptions, closing: AsyncDisposableStack): Promise<Balancer> {
  const { listen, clock, lookMs = LOOK_MS } = options
  const targets: Target[] = options.servers.map((server) => ({
    ...server,
    isUp: true,
    connections: 0,
    sockets: new Set(),
  }))
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true, keepAlive: true, pauseOnConnect: true }, (client) => {
    sockets.add(client)
    client.on('error', () => undefined).on('close', () => sockets.delete(client))
    void serve(client, targets, options)
  })
  await listening(server, listen)
  let timer: Timer | undefined
  let isClosed = false
  const look = (): void => {
    void Promise.all(targets.map((target) => lookAt(target, options))).then(again)
  }
  const again = (): void => {
    if (!isClosed) timer = clock.after(lookMs, look, { background: true })
  }
  again()
  closing.defer(() => {
    isClosed = true
    timer?.cancel()
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const address = server.address()
  return { port: typeof address === 'object' && address !== null ? address.port : listen.port }
}

async function serve(client: Socket, targets: readonly Target[], options: BalancerOptions): Promise<void> {
  for (const target of inOrder(targets)) {
    const upstream = await open(target, options)
    target.isUp = typeof upstream !== 'string'
    if (typeof upstream === 'string') continue
    if (client.destroyed) return void upstream.destroy()
    target.connections++
    target.sockets.add(upstream)
    upstream.once('close', () => {
      target.connections--
      target.sockets.delete(upstream)
    })
    pipeline(client, upstream, client, () => undefined)
    client.resume()
    return
  }
  client.destroy()
}

/** Those that are up first, and of them those with the fewest connections. Pure. */
export function inOrder<T extends Pick<Target, 'isUp' | 'connections'>>(targets: readonly T[]): T[] {
  return targets.toSorted((a, b) => Number(b.isUp) - Number(a.isUp) || a.connections - b.connections)
}

async function lookAt(target: Target, options: BalancerOptions): Promise<void> {
  const found = await open(target, options)
  target.isUp = typeof found !== 'string'
  if (typeof found !== 'string') found.destroy()
  // One that refuses is being replaced, and ends what it has by itself.
  if (found === 'silent') for (const socket of target.sockets) socket.destroy()
}

const NOBODY_THERE = new Set(['EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'ETIMEDOUT'])

function open(
  { host, port }: TcpServer,
  { clock, connectMs = CONNECT_MS }: BalancerOptions,
): Promise<Socket | 'refused' | 'silent'> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, noDelay: true, keepAlive: true })
    const late = clock.after(connectMs, () => {
      resolve('silent')
      socket.destroy()
    })
    let code = ''
    socket.on('error', (error: NodeJS.ErrnoException) => (code = error.code ?? ''))
    socket.once('connect', () => {
      late.cancel()
      socket.off('close', failed)
      resolve(socket)
    })
    const failed = (): void => {
      late.cancel()
      resolve(NOBODY_THERE.has(code) ? 'silent' : 'refused')
    }
    socket.once('close', failed)
  })
}

function listening(server: Server, { host, port }: TcpServer): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
}
