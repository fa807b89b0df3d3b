/**
 * Connects the cluster builder to the machines of a cluster through the tunnels of their agents, without SSH or any
 * access to their network.
 */
import type { Duplex } from 'node:stream'

import type { Connect } from '#provision/apply/connections.ts'
import { MachineLost } from '#provision/machine.ts'
import { connectThroughTunnel, type TunnelConnectOptions } from '#provision/tunnel/connect.ts'

import { type Machine, Machines } from '../kinds/machine.ts'
import type { MachineTunnels } from '../links/machine-tunnels.ts'
import type { ManagementObjects } from '../objects.ts'
import { openApiPort } from './api-port.ts'

export interface MachineWaysOptions {
  readonly objects: Pick<ManagementObjects, 'list' | 'clock'>
  readonly machines: Pick<MachineTunnels, 'dialBuilder' | 'dialApiPort'>
}

/** The ways to the machines of a cluster. Names are those of nodes. */
export type MachineWays = (
  cluster: string,
  places: Pick<TunnelConnectOptions, 'home' | 'payload'>,
  signal: AbortSignal,
) => {
  /** Whether a machine with this name has registered. It may be away. */
  has(name: string): boolean
  /** Rejects with MachineLost while the agent of a machine is away. */
  readonly connect: Connect
  /** A port of 127.0.0.1 that leads to the API server of any of these control planes whose agent is connected. */
  apiPort(names: readonly string[], closing: AsyncDisposableStack): Promise<number>
}

export function machineWays({ objects, machines }: MachineWaysOptions): MachineWays {
  return (cluster, { home, payload }, signal) => {
    const find = (name: string): Machine | undefined =>
      objects.list(Machines).find(({ spec }) => spec.cluster === cluster && spec.nodeName === name)
    return {
      has: (name) => find(name) !== undefined,
      connect(name, installs) {
        const dial: TunnelConnectOptions['dial'] = () => {
          const machine = find(name)
          if (machine === undefined) throw new MachineLost(`${name}: no machine with this name has registered`)
          const stream = machines.dialBuilder(machine.metadata.name ?? '')
          if (stream === undefined) throw new MachineLost(`${name}: the agent of this machine is not connected`)
          return stream
        }
        return connectThroughTunnel({ name, dial, home, payload, installs, clock: objects.clock }, signal)
      },
      apiPort(names, closing) {
        const dial = (): Duplex | undefined => {
          for (const name of names) {
            const stream = machines.dialApiPort(find(name)?.metadata.name ?? '')
            if (stream !== undefined) return stream
          }
          return undefined
        }
        return openApiPort(dial, closing)
      },
    }
  }
}
