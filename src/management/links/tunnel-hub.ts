/** Keeps the tunnels of connected agents by cluster. Requests to a cluster use its newest tunnel. */
import type { Duplex } from 'node:stream'

import type { Clock } from '#lib/clock.ts'
import type { Tunnel } from '#lib/tunnel/tunnel.ts'

import type { ClusterLink, ClusterLinks } from './link.ts'
import { dialApi, tunnelLink } from './tunnel-link.ts'

interface Session {
  readonly tunnel: Tunnel
  readonly link: ClusterLink
  /** Opens a stream for a request to the API server. */
  readonly dial: () => Duplex
}

/** For tunnels of agents that are not ours. */
export interface ServeOptions {
  /** Default: a stream to the agent for a request to the API server. */
  readonly dial?: () => Duplex
  /** A `tunnel.serve()` that has begun before. */
  readonly serving?: Promise<void>
}

/** Called when the first tunnel of a cluster is there, and when the last one is gone. */
type HubListener = (cluster: string, isConnected: boolean) => void

export interface HubCounts {
  readonly tunnels: number
  readonly streams: number
  readonly receivedBytes: number
  readonly sentBytes: number
}

export interface TunnelHub extends ClusterLinks {
  /** Serves the tunnel until it ends. Rejects with the error that broke it. */
  serve(cluster: string, tunnel: Tunnel, options?: ServeOptions): Promise<void>
  /** A stream for a request to the API server of a cluster; undefined without a tunnel. */
  dial(cluster: string): Duplex | undefined
  /** Calls `listener` for all that are connected, and for each change. Returns a function that ends it. */
  listen(listener: HubListener): () => void
  /** The traffic of all tunnels. Bytes include those of tunnels that have ended. */
  counts(): HubCounts
  /** For how long the agent of a cluster has not answered a probe; 0 without a tunnel. Sends a probe if none waits. */
  silentMs(cluster: string): number
  /** Ends the tunnels of a cluster that was removed. */
  disconnect(cluster: string): void
  /** Ends all tunnels. Agents connect again, unless the server stops. */
  disconnectAll(): void
}

export function createTunnelHub(clock: Clock): TunnelHub {
  const sessions = new Map<string, Session[]>()
  const listeners = new Set<HubListener>()
  const tell = (cluster: string, isConnected: boolean): void => {
    for (const listener of listeners) listener(cluster, isConnected)
  }
  const past = { receivedBytes: 0, sentBytes: 0 }
  const newest = (cluster: string): Session | undefined => sessions.get(cluster)?.at(-1)
  const end = ({ tunnel }: Session): void => void tunnel.close()
  return {
    get: (cluster) => newest(cluster)?.link,
    async serve(cluster, tunnel, { dial = () => dialApi(tunnel), serving } = {}) {
      const session = { tunnel, dial, link: tunnelLink(clock, dial) }
      const before = sessions.get(cluster)
      sessions.set(cluster, [...(before ?? []), session])
      if (before === undefined) tell(cluster, true)
      try {
        await (serving ?? tunnel.serve())
      } finally {
        past.receivedBytes += tunnel.receivedBytes
        past.sentBytes += tunnel.sentBytes
        const others = (sessions.get(cluster) ?? []).filter((other) => other !== session)
        if (others.length > 0) sessions.set(cluster, others)
        else if (sessions.delete(cluster)) tell(cluster, false)
      }
    },
    dial: (cluster) => newest(cluster)?.dial(),
    listen(listener) {
      for (const cluster of sessions.keys()) listener(cluster, true)
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    counts: () => countsOf([...sessions.values()].flat(), past),
    silentMs: (cluster) => newest(cluster)?.tunnel.silentMs() ?? 0,
    disconnect: (cluster) => sessions.get(cluster)?.forEach(end),
    disconnectAll: () => [...sessions.values()].flat().forEach(end),
  }
}

function countsOf(sessions: readonly Session[], past: Pick<HubCounts, 'receivedBytes' | 'sentBytes'>): HubCounts {
  const sum = (of: (tunnel: Tunnel) => number): number => sessions.reduce((total, { tunnel }) => total + of(tunnel), 0)
  return {
    tunnels: sessions.length,
    streams: sum(({ streams }) => streams),
    receivedBytes: past.receivedBytes + sum(({ receivedBytes }) => receivedBytes),
    sentBytes: past.sentBytes + sum(({ sentBytes }) => sentBytes),
  }
}
