/**
 * Node IPAM: assigns pod CIDRs to nodes (`spec.podCIDRs`) for their lifetime. Allocates round-robin, so that a released
 * CIDR is reused last.
 */
import { type Node, Nodes } from '#apis/core/v1.ts'
import { sleep } from '#lib/clock.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { StatusError } from '#meta/status.ts'
import { EVENTS, itself, rule } from '#reconcile/controller.ts'

import { perRun } from '../../controller.ts'
import { type Controller, type ControllerContext, defineController } from '../../controller.ts'
import { recordNodeStatus } from '../node-events.ts'
import { Pool } from './pool.ts'
import { planRanges } from './ranges.ts'

const PATCH_TRIES = 3
/** The timeout of the initial list, and its retry period. */
const LIST_MS = 600_000
const LIST_PERIOD_MS = 10_000

export const nodeIpamController: Controller = defineController({
  name: 'node-ipam-controller',
  aliases: ['nodeipam'],
  account: 'node-controller',
  component: 'cidrAllocator',
  workers: 30,
  watches: [itself(Nodes)],
  rules: [rule('', 'nodes', 'get list patch watch'), EVENTS],

  /** Reserves the CIDRs of existing nodes before any allocation. */
  async prepare(context) {
    if (!context.settings['allocate-node-cidrs']) return false
    const pool = poolOf(context)
    for (const node of await listNodes(context)) pool.occupy(node)
    return true
  },

  async reconcile(name, context) {
    const pool = poolOf(context)
    const node = context.cache.get(Nodes, name)
    pool.forget(name, node?.metadata.uid)
    if (node === undefined || isBeingDeleted(node)) return
    if ((node.spec.podCIDRs ?? []).length > 0) pool.occupy(node)
    else await assignCidrs(node, pool, context)
  },
})

const poolOf = perRun(({ settings }) => new Pool(planRanges(settings)))

async function listNodes({ client, clock, log, signal }: ControllerContext): Promise<readonly Node[]> {
  const endMs = clock.elapsed() + LIST_MS
  for (;;) {
    try {
      return (await client.list(Nodes, { signal })).items
    } catch (error) {
      log.error(error, 'Failed to list all nodes')
    }
    if (clock.elapsed() + LIST_PERIOD_MS > endMs)
      throw new Error('failed to list all nodes in 10m0s, cannot proceed without updating CIDR map')
    await sleep(clock, LIST_PERIOD_MS, signal)
  }
}

async function assignCidrs(node: Node, pool: Pool, context: ControllerContext): Promise<void> {
  const { client, signal } = context
  const { name = '', uid } = node.metadata
  let given: readonly string[] | undefined
  try {
    given = pool.give(node)
  } catch (error) {
    recordNodeStatus(node, 'CIDRNotAvailable', context)
    throw error
  }
  if (given === undefined) return
  const value = { metadata: { uid }, spec: { podCIDR: given[0], podCIDRs: given } }
  for (let tries = 1; ; tries++) {
    try {
      await client.patch(Nodes, { name }, { type: 'strategic', value }, { signal })
      return pool.written(name)
    } catch (error) {
      if (tries < PATCH_TRIES) continue
      recordNodeStatus(node, 'CIDRAssignmentFailed', context)
      if (isRefusal(error)) pool.forget(name, undefined)
      throw error
    }
  }
}

/** Whether the server refused. After a timeout or a lost connection, the write may have succeeded. */
function isRefusal(error: unknown): boolean {
  return error instanceof StatusError && !['ServerTimeout', 'Timeout'].includes(error.status.reason ?? '')
}
