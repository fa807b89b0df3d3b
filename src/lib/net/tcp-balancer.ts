/**
 * A TCP balancer: each connection goes to the healthy server with the fewest connections. When a server fails several
 * probes, the balancer closes its connections, so that clients reconnect.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { pipeline } from 'node:stream'

import { onAbort } from '../abort.ts'
import { type Clock, sleep } from '../clock.ts'

export interface TcpServer {
  readonly host: string
  readonly port: number
}

export interface BalancerOptions {
  readonly listen: TcpServer
  readonly servers: readonly TcpServer[]
  readonly clock: Clock
  /** Resolves as soon as there is a connection or there is none; the signal gives it up. For tests. */
  readonly dial?: (server: TcpServer, signal: AbortSignal) => Promise<Dialled>
}

export type Dialled = Socket | 'refused' | 'silent'

export interface Balancer {
  /** The requested port, or the assigned one for 0. */
  readonly port: number
}

interface Target extends TcpServer {
  isUp: boolean
  connections: number
  /** Questions since it last answered one. */
  unanswered: number
  readonly sockets: Set<Socket>
}

/** Between two questions to a server that answers. */
const LOOK_MS = 1000
/**
 * The time in which a server must accept; then it is probed again, and a waiting connection also tries the next one.
 */
const ANSWER_MS = 250
/** So many questions are not all lost by chance. */
const MAX_UNANSWERED = 4
/** The maximum wait for any server. */
const CONNECT_MS = 5000

/** Resolves when it listens. Ends with `closing`, and all connections with it. */
export async function startBalancer(options: BalancerOptions, closing: AsyncDisposableStack): Promise<Balancer> {
  const { listen, clock, dial = dialTcp } = options
  const targets: Target[] = options.servers.map((server) => ({
    ...server,
    isUp: true,
    connections: 0,
    unanswered: 0,
    sockets: new Set(),
  }))
  const sockets = new Set<Socket>()
  const ended = new AbortController()
  const world: World = { clock, dial, ended: ended.signal }
  const server = createServer({ noDelay: true, keepAlive: true, pauseOnConnect: true }, (client) => {
    sockets.add(client)
    client.on('error', () => undefined).on('close', () => sockets.delete(client))
    void serve(client, targets, world)
  })
  await listening(server, listen)
  for (const target of targets) void lookAfter(target, world)
  closing.defer(() => {
    ended.abort()
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const address = server.address()
  return { port: typeof address === 'object' && address !== null ? address.port : listen.port }
}

interface World {
  readonly clock: Clock
  readonly dial: NonNullable<BalancerOptions['dial']>
  readonly ended: AbortSignal
}

async function serve(client: Socket, targets: readonly Target[], world: World): Promise<void> {
  const found = await firstOf(inOrder(targets), world)
  if (found === undefined) return void client.destroy()
  const { target, socket } = found
  if (client.destroyed) return void socket.destroy()
  target.connections++
  target.sockets.add(socket)
  socket.once('close', () => {
    target.connections--
    target.sockets.delete(socket)
  })
  pipeline(client, socket, client, () => undefined)
  client.resume()
}

/** The first that accepts; each is tried when the one before it has refused, or has not answered for a while. */
async function firstOf(
  targets: readonly Target[],
  world: World,
): Promise<{ readonly target: Target; readonly socket: Socket } | undefined> {
  const { promise: won, resolve: win } = Promise.withResolvers<{ target: Target; socket: Socket }>()
  let isWon = false
  const attempts: Promise<void>[] = []
  const attemptOf = async (target: Target): Promise<void> => {
    const socket = await ask(target, world)
    if (typeof socket === 'string') return
    if (isWon) return void socket.destroy()
    isWon = true
    win({ target, socket })
  }
  for (const target of targets) {
    const attempt = attemptOf(target)
    attempts.push(attempt)
    const waiting = new AbortController()
    const patience = sleep(world.clock, ANSWER_MS, waiting.signal).catch(() => undefined)
    await Promise.race([attempt, patience])
    waiting.abort()
    if (isWon) return won
  }
  return Promise.race([won, Promise.all(attempts).then(() => (isWon ? won : undefined))])
}

/** Those that are up first, and of them those with the fewest connections. Pure. */
export function inOrder<T extends Pick<Target, 'isUp' | 'connections'>>(targets: readonly T[]): T[] {
  return targets.toSorted((a, b) => Number(b.isUp) - Number(a.isUp) || a.connections - b.connections)
}

/** Asks it now and then whether it accepts, and more often while it does not answer. */
async function lookAfter(target: Target, world: World): Promise<void> {
  const { clock, ended } = world
  const pause = (ms: number): Promise<void> => sleep(clock, ms, ended, { background: true }).catch(() => undefined)
  while (!ended.aborted) {
    target.unanswered++
    void ask(target, world).then((found) => typeof found === 'string' || found.destroy())
    await pause(ANSWER_MS)
    if (target.unanswered === 0) {
      await pause(LOOK_MS - ANSWER_MS)
      continue
    }
    target.isUp = false
    if (target.unanswered >= MAX_UNANSWERED) for (const socket of target.sockets) socket.destroy()
  }
}

async function ask(target: Target, { clock, dial, ended }: World): Promise<Dialled> {
  const over = new AbortController()
  const timer = clock.after(CONNECT_MS, () => over.abort(), { background: true })
  const release = onAbort(ended, () => over.abort())
  const found = await dial(target, over.signal)
  timer.cancel()
  release()
  if (found === 'silent') return found
  target.unanswered = 0
  target.isUp = found !== 'refused'
  return found
}

const NO_ANSWER_CODES = new Set(['EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'ETIMEDOUT', 'ABORT_ERR'])

function dialTcp({ host, port }: TcpServer, signal: AbortSignal): Promise<Dialled> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, noDelay: true, keepAlive: true, signal })
    let code = ''
    socket.on('error', (error: NodeJS.ErrnoException) => (code = error.code ?? ''))
    const failed = (): void => resolve(NO_ANSWER_CODES.has(code) ? 'silent' : 'refused')
    socket.once('close', failed)
    socket.once('connect', () => {
      socket.off('close', failed)
      resolve(socket)
    })
  })
}

function listening(server: Server, { host, port }: TcpServer): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
}
