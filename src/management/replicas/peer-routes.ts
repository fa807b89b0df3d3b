/**
 * Serves connections of other replicas: streams to agents that are connected here, and requests that the leader must
 * serve.
 */
import type { Duplex } from 'node:stream'

import type { Clock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { createHttpServer } from '#lib/http/server.ts'
import { acceptWebSocket } from '#lib/http/websocket.ts'
import type { Logger } from '#lib/log/log.ts'
import { asSocket } from '#lib/net/as-socket.ts'
import { type Accept, Tunnel, TUNNEL_PROTOCOL } from '#lib/tunnel/tunnel.ts'
import type { Authority } from '#lib/x509/authority.ts'
import { badRequestError, unauthorizedError } from '#meta/status-errors.ts'

import type { TunnelHub } from '../links/tunnel-hub.ts'
import type { Route } from '../port/route.ts'
import { replicaOf } from './certificates.ts'
import { joinStreams } from './join-streams.ts'
import { PEER_PATH, STREAMS } from './peer-protocol.ts'

export interface PeerRoutesOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly ca: Authority
  readonly hub: Pick<TunnelHub, 'dial' | 'listen'>
  /** Serves a request that another replica passes on. */
  readonly serve: (exchange: Exchange) => Promise<void>
}

export interface PeerRoutes {
  readonly routes: readonly Route[]
  /** Ends the connections of other replicas. */
  close(): Promise<void>
}

const PING_MS = 3000
const SILENCE_MS = 8000
const GRACE_MS = 1000
const MAX_STREAMS = 20_000
/** A replica that reads nothing has to connect again. */
const MAX_LINES_BYTES = 1 << 20

export function peerRoutes({ clock, log, ca, hub, serve }: PeerRoutesOptions): PeerRoutes {
  const tunnels = new Set<Tunnel>()
  const inner = createInnerServer({ clock, log, serve })
  const accept: Accept = (protocol, address) => {
    if (protocol === STREAMS.clusters) return (stream) => tellClusters(hub, stream)
    if (protocol === STREAMS.port) return inner.accept
    if (protocol !== STREAMS.cluster) return undefined
    // Only agents that are connected here: requests make one hop between replicas, not more.
    const agent = hub.dial(address)
    return agent === undefined ? undefined : (stream) => joinStreams(stream, agent)
  }
  const route: Route = {
    method: 'GET',
    path: PEER_PATH,
    access: 'agent',
    async serve({ exchange }) {
      const replica = replicaOf(exchange, ca, clock)
      if (replica === undefined) throw unauthorizedError('Unauthorized')
      if (exchange.upgradeProtocol !== 'websocket') throw badRequestError('the request is not a WebSocket handshake')
      const limits = { clock, pingIntervalMs: PING_MS, silenceLimitMs: SILENCE_MS }
      const choose = (offered: readonly string[]): string | undefined => offered.find((one) => one === TUNNEL_PROTOCOL)
      const connection = await acceptWebSocket(exchange, { ...limits, choose })
      const tunnel = new Tunnel(connection, { clock, accept })
      tunnels.add(tunnel)
      try {
        await tunnel.serve()
      } catch (error) {
        log.info('Lost connection from another replica', { replica, err: (error as Error).message })
      } finally {
        tunnels.delete(tunnel)
      }
      return { served: 101 }
    },
  }
  return {
    routes: [route],
    async close() {
      await Promise.all([...tunnels].map((tunnel) => tunnel.close()))
      await inner.close()
    },
  }
}

function tellClusters(hub: PeerRoutesOptions['hub'], stream: Duplex): void {
  const unlisten = hub.listen((cluster, isConnected) => {
    stream.write(`${isConnected ? '+' : '-'}${cluster}\n`)
    if (stream.writableLength > MAX_LINES_BYTES) stream.destroy(new Error('The other replica does not read'))
  })
  stream.on('close', unlisten)
  stream.resume()
}

function createInnerServer({ clock, log, serve }: Pick<PeerRoutesOptions, 'clock' | 'log' | 'serve'>): {
  readonly accept: (stream: Duplex) => void
  close(): Promise<void>
} {
  const server = createHttpServer({
    clock,
    limits: { maxConnections: MAX_STREAMS, maxConnectionsPerAddress: MAX_STREAMS, requestTimeoutMs: 0 },
    onError: (error) => log.error(error, 'Failed to serve a request of another replica'),
    serve,
  })
  let take: (stream: Duplex) => void = () => undefined
  server.accept({
    address: { path: 'replicas' },
    accept: (accepted) => {
      take = (stream) => accepted(asSocket(stream))
    },
    close: () => undefined,
  })
  return { accept: (stream) => take(stream), close: () => server.drain(GRACE_MS) }
}
