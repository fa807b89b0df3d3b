/**
 * Registry of the tunnels from connected machines, by name of the Machine object. If a machine has several, the
 * newest is used.
 */
import type { Duplex } from 'node:stream'

import type { Clock } from '#lib/clock.ts'
import type { Tunnel } from '#lib/tunnel/tunnel.ts'

import type { ClusterLink } from './link.ts'
import { dialApi, tunnelLink } from './tunnel-link.ts'

interface Session {
  readonly tunnel: Tunnel
  /** To the API server of the machine, if it is a control plane. */
  readonly link: ClusterLink
}

export interface MachineTunnels {
  /** Serves the tunnel until it ends. Rejects with the error that broke it. */
  serve(machine: string, tunnel: Tunnel): Promise<void>
  isConnected(machine: string): boolean
  /** For how long the agent has not answered a probe; 0 without a tunnel. Sends a probe if none waits. */
  silentMs(machine: string): number
  /** A stream to the builder's service of the machine; undefined without a tunnel. */
  dialBuilder(machine: string): Duplex | undefined
  apiServer(machine: string): ClusterLink | undefined
  /** A stream for a request to `apiServer`. */
  dialApi(machine: string): Duplex | undefined
  /** A connection to the port of the API server on the machine, for a client with its own credentials. */
  dialApiPort(machine: string): Duplex | undefined
  /** Calls `listener` for all that are connected, and for each change. Returns a function that ends it. */
  listen(listener: MachineListener): () => void
  /** Ends the tunnels of a machine that was removed. */
  disconnect(machine: string): void
  /** Ends all tunnels. Agents connect again, unless the server stops. */
  disconnectAll(): void
}

/** Called when the first tunnel of a machine has connected, and when the last one has ended. */
type MachineListener = (machine: string, isConnected: boolean) => void

/** The agent of a machine accepts only these addresses and that of the API server. */
const BUILDER_ADDRESS = 'machine'
const API_PORT_ADDRESS = 'kube-apiserver-port'

export function createMachineTunnels(clock: Clock): MachineTunnels {
  const sessions = new Map<string, readonly Session[]>()
  const listeners = new Set<MachineListener>()
  const tell: MachineListener = (machine, isConnected) => {
    for (const listener of listeners) listener(machine, isConnected)
  }
  const newest = (machine: string): Session | undefined => sessions.get(machine)?.at(-1)
  const end = ({ tunnel }: Session): void => void tunnel.close()
  return {
    async serve(machine, tunnel) {
      const session = { tunnel, link: tunnelLink(clock, () => dialApi(tunnel)) }
      const before = sessions.get(machine)
      sessions.set(machine, [...(before ?? []), session])
      if (before === undefined) tell(machine, true)
      try {
        await tunnel.serve()
      } finally {
        const others = (sessions.get(machine) ?? []).filter((other) => other !== session)
        if (others.length > 0) sessions.set(machine, others)
        else if (sessions.delete(machine)) tell(machine, false)
      }
    },
    isConnected: (machine) => sessions.has(machine),
    silentMs: (machine) => newest(machine)?.tunnel.silentMs() ?? 0,
    dialBuilder: (machine) => newest(machine)?.tunnel.dial('tcp', BUILDER_ADDRESS, { priority: 'bulk' }),
    apiServer: (machine) => newest(machine)?.link,
    dialApi(machine) {
      const session = newest(machine)
      return session === undefined ? undefined : dialApi(session.tunnel)
    },
    dialApiPort: (machine) => newest(machine)?.tunnel.dial('tcp', API_PORT_ADDRESS),
    listen(listener) {
      for (const machine of sessions.keys()) listener(machine, true)
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    disconnect: (machine) => sessions.get(machine)?.forEach(end),
    disconnectAll: () => [...sessions.values()].flat().forEach(end),
  }
}
