/**
 * Upstream's `cloud-node-lifecycle-controller`: deletes nodes whose machines are gone, and taints those whose machines
 * are shut down.
 */
import { type Node, Nodes } from '#apis/core/v1.ts'
import { sleep } from '#lib/clock.ts'
import { isNotFound } from '#meta/status.ts'
import { rule, type Controller, EVENTS, type ControllerContext, related } from '#reconcile/controller.ts'

import type { Instances } from './provider.ts'

const SHUTDOWN = { key: 'node.cloudprovider.kubernetes.io/shutdown', effect: 'NoSchedule' } as const

export interface NodeLifecycleOptions {
  readonly instances: Instances
  readonly periodMs: number
}

export function createNodeLifecycleLoop({ instances, periodMs }: NodeLifecycleOptions): Controller {
  return {
    name: 'cloud-node-lifecycle-controller',
    aliases: ['cloud-node-lifecycle'],
    account: 'node-controller',
    component: 'cloud-node-lifecycle-controller',
    watches: [related(Nodes, () => [])],
    rules: [rule('', 'nodes', 'get list watch delete patch update'), EVENTS],
    reconcile: () => Promise.resolve(),
    async run(context) {
      for (;;) {
        for (const node of Array.from(context.cache.list(Nodes))) {
          await checkInstance(instances, node, context).catch((error: unknown) =>
            context.log.error(error, 'Failed to check whether the node exists in the cloud', {
              node: node.metadata.name,
            }),
          )
        }
        await sleep(context.clock, periodMs, context.signal, { background: true })
      }
    },
  }
}

async function checkInstance(instances: Instances, node: Node, context: ControllerContext): Promise<void> {
  const { client, signal, event } = context
  const { name = '' } = node.metadata
  const isMarked = node.spec.taints?.some(({ key }) => key === SHUTDOWN.key) ?? false
  if (node.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True') {
    if (isMarked) await mark(node, false, context)
    return
  }
  if (await instances.exists(node, signal)) {
    if (!isMarked && (await instances.isShutDown(node, signal))) await mark(node, true, context)
    return
  }
  const message = `Deleting node ${name} because it does not exist in the cloud provider`
  event(node, { type: 'Normal', reason: 'DeletingNode', message })
  try {
    await client.delete(Nodes, { name }, { signal })
  } catch (error) {
    if (isNotFound(error)) return
    const failure = `Failed deleting node ${name}: ${(error as Error).message}`
    event(node, { type: 'Warning', reason: 'DeletingNodeFailed', message: failure })
    throw error
  }
}

async function mark(node: Node, isOff: boolean, { client, signal }: ControllerContext): Promise<void> {
  const others = (node.spec.taints ?? []).filter(({ key }) => key !== SHUTDOWN.key)
  const taints = isOff ? [...others, SHUTDOWN] : others
  await client.update(Nodes, { ...node, spec: { ...node.spec, taints } }, { signal })
}
