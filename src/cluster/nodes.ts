/** Simulated nodes in the process of their server: each is who its kubelet would be. */
import { type Node, Nodes } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { follow } from '#client/follow.ts'
import type { RunningServer } from '#control-plane/server.ts'
import type { Surroundings } from '#control-plane/site.ts'
import type { NodePlan } from '#kubelet/simulated/node-life.ts'
import { type SimulatedNodes, startSimulatedNodes } from '#kubelet/simulated/start.ts'
import type { ObjectEvent } from '#meta/watch.ts'

import type { MachineNodePlan } from './machine-node.ts'

export interface NodesPlan {
  /** How many, or which. */
  readonly simulated: number | readonly NodePlan[]
  /** How often they say that they are there; default: as kubelets do. */
  readonly renewMs?: number
  /** The machine itself, with containers. */
  readonly machine?: MachineNodePlan
}

/** Resolves when they are registered. They end before what is on `closing` already. */
export async function startInProcessNodes(
  { server }: Pick<RunningServer, 'server'>,
  { simulated, ...options }: NodesPlan & Pick<Surroundings, 'clock' | 'random' | 'log'>,
  closing: AsyncDisposableStack,
): Promise<SimulatedNodes> {
  const nodes = await startSimulatedNodes({
    ...options,
    nodes: simulated,
    connect: (user) => ({ transport: server.clientAs({ ...user, groups: [...user.groups] }) }),
  })
  return closing.use(nodes)
}

/** Resolves when so many nodes are ready and the controller that judges nodes has said so, or when everything ends. */
export async function untilReady(
  client: ApiClient,
  { simulated, machine, random }: NodesPlan & Pick<Surroundings, 'random'>,
  closing: AsyncDisposableStack,
): Promise<void> {
  const many = (typeof simulated === 'number' ? simulated : simulated.length) + (machine === undefined ? 0 : 1)
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
