/** Controller and function that write to the status of a Machine whether its agent is connected. */
import { setCondition } from '#meta/conditions.ts'
import { semanticEqual } from '#meta/object.ts'
import { type Controller, itself, rule } from '#reconcile/controller.ts'

import { GROUP } from '../kinds/definition.ts'
import { type Machine, MACHINE_CONNECTED, Machines, type MachineStatus } from '../kinds/machine.ts'
import type { ConnectedMachine } from '../links/agent-routes.ts'
import type { MachineTunnels } from '../links/machine-tunnels.ts'
import type { ManagementObjects } from '../objects.ts'

const CHECK_MS = 60_000

/** Called when the agent of a machine has connected, and when its last tunnel has ended. */
export async function recordMachine(
  objects: ManagementObjects,
  { metadata }: Machine,
  agent: ConnectedMachine | undefined,
): Promise<void> {
  const { name = '' } = metadata
  const change = (now: Machine): Machine => ({ ...now, status: statusAfter(now.status, agent, objects) })
  try {
    await objects.change(Machines, name, change, { subresource: 'status' })
  } catch (error) {
    // A removed machine has no status any more.
    objects.log.info('Failed to record the connection of a machine', { machine: name, err: (error as Error).message })
  }
}

function statusAfter(
  before: MachineStatus = {},
  agent: Partial<ConnectedMachine> | undefined,
  { clock }: Pick<ManagementObjects, 'clock'>,
): MachineStatus {
  const now = new Date(clock.now()).toISOString()
  const conditions = (before.conditions ?? []).map((condition) => ({ ...condition }))
  if (agent === undefined) {
    const message = 'The agent of the machine is not connected.'
    setCondition(conditions, { type: MACHINE_CONNECTED, status: 'False', reason: 'AgentDisconnected', message }, clock)
    return { ...before, disconnectedAt: before.disconnectedAt ?? now, conditions }
  }
  const { disconnectedAt: _, ...rest } = before
  const message = 'The agent of the machine is connected.'
  setCondition(conditions, { type: MACHINE_CONNECTED, status: 'True', reason: 'AgentConnected', message }, clock)
  return { ...rest, ...agent, connectedAt: now, conditions }
}

/** Corrects the status of machines whose replica of the server ended, or that changed to another one. */
export function createMachineStatus(machines: Pick<MachineTunnels, 'isConnected'>): Controller<object> {
  return {
    name: 'machine-status-controller',
    watches: [itself(Machines)],
    rules: [rule(GROUP, 'machines machines/status', 'get list watch update')],
    async reconcile(key, { cache, client, clock }) {
      const machine = cache.get(Machines, key)
      if (machine === undefined) return undefined
      const isConnected = machines.isConnected(key)
      if (isConnected && machine.status?.disconnectedAt === undefined) return { requeueAfterMs: CHECK_MS }
      const status = statusAfter(machine.status, isConnected ? {} : undefined, { clock })
      if (!semanticEqual(status, machine.status)) await client.updateStatus(Machines, { ...machine, status })
      return { requeueAfterMs: CHECK_MS }
    },
  }
}
