/** Keeps the tunnels of connected agents by cluster. Requests to a cluster use its newest tunnel. */
import { API_SERVER_ADDRESS } from '#cluster-agent/agent.ts'
import type { Clock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import type { Tunnel } from '#lib/tunnel/tunnel.ts'

import type { ClusterLink, ClusterLinks } from './link.ts'

interface Session {
  readonly tunnel: Tunnel
  readonly link: ClusterLink & { readonly client: HttpClient }
}

export interface TunnelHub extends ClusterLinks {
  /** Serves the tunnel until it ends. Rejects with the error that broke it. */
  serve(cluster: string, tunnel: Tunnel): Promise<void>
  /** Ends the tunnels of a cluster that was removed. */
  disconnect(cluster: string): void
  close(): void
}

/** Requests use HTTP/1.1 on streams of the tunnel, so the host is only a name. */
const URL = `http://${API_SERVER_ADDRESS}`

export function createTunnelHub(clock: Clock): TunnelHub {
  const sessions = new Map<string, Session[]>()
  const end = ({ tunnel, link }: Session): void => {
    link.client.close()
    void tunnel.close()
  }
  return {
    get: (cluster) => sessions.get(cluster)?.at(-1)?.link,
    async serve(cluster, tunnel) {
      const session = { tunnel, link: linkThrough(tunnel, clock) }
      sessions.set(cluster, [...(sessions.get(cluster) ?? []), session])
      try {
        await tunnel.serve()
      } finally {
        session.link.client.close()
        const others = (sessions.get(cluster) ?? []).filter((other) => other !== session)
        if (others.length > 0) sessions.set(cluster, others)
        else sessions.delete(cluster)
      }
    },
    disconnect: (cluster) => sessions.get(cluster)?.forEach(end),
    close: () => [...sessions.values()].flat().forEach(end),
  }
}

function linkThrough(tunnel: Tunnel, clock: Clock): Session['link'] {
  const connect = (): Promise<ReturnType<Tunnel['dial']>> =>
    Promise.resolve(tunnel.dial('tcp', `${API_SERVER_ADDRESS}:443`))
  return {
    client: createHttpClient({ clock, connect, http1Only: true }),
    url: URL,
    identityHeaders: ({ name, groups }) => ({ 'impersonate-user': name, 'impersonate-group': groups }),
  }
}
