/** Nodes in the process of their server: each is who its kubelet would be. */
import { type Node, Nodes } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { follow } from '#client/follow.ts'
import type { RunningServer } from '#control-plane/server.ts'
import type { Surroundings } from '#control-plane/site.ts'
import type { NodePlan } from '#kubelet/simulated/node-life.ts'
import { type SimulatedNodes, startSimulatedNodes } from '#kubelet/simulated/start.ts'
import type { ObjectEvent } from '#meta/watch.ts'

import type { MachineNode, MachineNodePlan, NodeSurroundings } from './machine-node.ts'

export interface NodesPlan {
  /** How many, or which. */
  readonly simulated: number | readonly NodePlan[]
  /** How often they say that they are there; default: as kubelets do. */
  readonly renewMs?: number
  /** The machine itself, with containers. */
  readonly machine?: MachineNodePlan
}

export interface StartedNodes {
  readonly simulated?: SimulatedNodes
  readonly machine?: MachineNode
}

/** Resolves when they are registered. They end before what is on `closing` already. */
export async function startInProcessNodes(
  running: Pick<RunningServer, 'server' | 'port'>,
  { simulated: nodes, machine: plan, ...around }: NodesPlan & NodeSurroundings,
  closing: AsyncDisposableStack,
): Promise<StartedNodes> {
  const simulated =
    nodes === 0
      ? undefined
      : await startSimulatedNodes({
          ...around,
          nodes,
          connect: (user) => ({ transport: running.server.clientAs({ ...user, groups: [...user.groups] }) }),
        })
  closing.use(simulated)
  if (plan === undefined) return { ...(simulated && { simulated }) }
  // Who runs no containers does not load what does.
  const { startMachineNode } = await import('./machine-node.ts')
  const machine = await startMachineNode(running, { ...around, ...plan }, closing)
  return { ...(simulated && { simulated }), machine }
}

/** Resolves when so many nodes are ready and the controller that judges nodes has said so, or when everything ends. */
export async function untilReady(
  client: ApiClient,
  { simulated, machine, random }: NodesPlan & Pick<Surroundings, 'random'>,
  closing: AsyncDisposableStack,
): Promise<void> {
  const real = machine === undefined ? 0 : 1 + machine.further.many
  const many = (typeof simulated === 'number' ? simulated : simulated.length) + real
  const done = new AbortController()
  closing.defer(() => done.abort())
  const ready = new Set<string>()
  const look = ({ metadata, spec }: Node): void => {
    if (spec.taints?.some(({ key }) => key === NOT_READY) !== true) ready.add(metadata.name ?? '')
    if (ready.size >= many) done.abort()
  }
  const follower = {
    replace: (nodes: readonly Node[]) => nodes.forEach(look),
    change: ({ object }: ObjectEvent<Node>) => look(object),
    failed: () => undefined,
  }
  await follow({ client, kind: Nodes, random, signal: done.signal }, follower)
}

const NOT_READY = 'node.kubernetes.io/not-ready'
