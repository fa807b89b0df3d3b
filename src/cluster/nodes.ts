/** Starts nodes in the API server's process, each with the identity of its kubelet. */
import { type Node, Nodes } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { follow } from '#client/reflector.ts'
import type { EnvironmentOptions } from '#control-plane/environment.ts'
import type { RunningServer } from '#control-plane/server.ts'
import type { ObjectEvent } from '#meta/watch.ts'
import type { NodePlan } from '#simulated-node/simulated-node.ts'
import { type SimulatedNodes, startSimulatedNodes } from '#simulated-node/start.ts'

import type { MachineNode, MachineNodePlan, NodeSurroundings } from './machine/machine-node.ts'

export interface NodesPlan {
  /** The number, or the nodes. */
  readonly simulated: number | readonly NodePlan[]
  /** The heartbeat period. Default: as kubelets. */
  readonly renewMs?: number
  /** The machine itself, with containers. */
  readonly machine?: MachineNodePlan
}

export interface StartedNodes {
  readonly simulated?: SimulatedNodes
  readonly machine?: MachineNode
}

/** Resolves when they are registered. They stop before everything already on `closing`. */
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
  // Loaded only with containers.
  const { startMachineNode } = await import('./machine/machine-node.ts')
  const machine = await startMachineNode(running, { ...around, ...plan }, closing)
  return { ...(simulated && { simulated }), machine }
}

/**
 * Resolves when this many nodes are ready and the node lifecycle controller has removed their taints, or when
 * everything stops.
 */
export async function untilReady(
  client: ApiClient,
  { simulated, machine, random }: NodesPlan & Pick<EnvironmentOptions, 'random'>,
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
