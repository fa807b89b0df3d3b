/**
 * Controller that starts, stops and removes the clusters on this machine according to their Cluster objects, and
 * keeps connections to their API servers.
 */
import type { Requeue } from '#lib/work-queue.ts'
import { isBeingDeleted, removeFinalizer } from '#meta/object.ts'
import { type Controller, itself, rule } from '#reconcile/controller.ts'

import { type Context, type Finding, type ManagementSettings, writeStatus } from '../clusters/cluster-status.ts'
import { type Cluster, Clusters, UP_RUNNING } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import type { UpLinks } from './links.ts'
import { planUpCluster, type UpAction } from './plan.ts'
import type { UpPrograms } from './programs.ts'

/** Keeps a Cluster until its state is deleted from this machine. */
export const UP_FINALIZER: string = `${GROUP}/up`

export interface UpTools {
  readonly programs: UpPrograms
  readonly links: UpLinks
}

/** Notices clusters that died, and certificates that were renewed. */
const CHECK_MS = 15_000
const RETRY_MS = 30_000
/** Several starts at once take longer than one after the other. */
const WORKERS = 2
const MAX_REASON = 2000

export function createUpController(tools: UpTools): Controller<ManagementSettings> {
  return {
    name: 'up-cluster-controller',
    workers: WORKERS,
    watches: [itself(Clusters)],
    rules: [rule(GROUP, 'clusters clusters/status', 'get list watch update')],
    reconcile: (key, context) => reconcile(key, context, tools),
  }
}

async function reconcile(key: string, context: Context, tools: UpTools): Promise<Requeue | undefined> {
  const cluster = context.cache.get(Clusters, key)
  if (cluster?.spec.source !== 'up') return undefined
  const { programs, links } = tools
  const action = planUpCluster(cluster, await programs.find(key))
  // Requests must not meet an API server that is about to end.
  if (action === 'stop' || action === 'remove') links.set(key, undefined)
  try {
    await act(action, cluster, programs)
  } catch (error) {
    const message = (error as Error).message.slice(-MAX_REASON)
    context.log.error(error, 'Failed to change a cluster of this machine', { cluster: key, action })
    await writeStatus(context, key, { conditions: [{ ...FAILED[action], message }] })
    return { requeueAfterMs: RETRY_MS }
  }
  if (isBeingDeleted(cluster)) {
    await forget(cluster, context)
    return undefined
  }
  const found = await programs.find(key)
  links.set(key, found?.endpoint)
  await writeStatus(context, key, { conditions: [found?.endpoint === undefined ? STOPPED : STARTED] })
  return { requeueAfterMs: CHECK_MS }
}

function act(action: UpAction, { metadata, spec }: Cluster, programs: UpPrograms): Promise<void> {
  const { name = '' } = metadata
  if (action === 'stop') return programs.stop(name)
  if (action === 'remove') return programs.remove(name)
  if (action === 'start' && spec.up !== undefined) return programs.start(name, spec.up)
  return Promise.resolve()
}

const STARTED: Finding = {
  type: UP_RUNNING,
  status: 'True',
  reason: 'Started',
  message: 'The cluster runs on the machine of the server.',
}
const STOPPED: Finding = {
  type: UP_RUNNING,
  status: 'False',
  reason: 'Stopped',
  message: 'The cluster is stopped. Its state is kept.',
}
const FAILED: Readonly<Record<UpAction, Omit<Finding, 'message'>>> = {
  start: { type: UP_RUNNING, status: 'False', reason: 'StartFailed' },
  stop: { type: UP_RUNNING, status: 'Unknown', reason: 'StopFailed' },
  remove: { type: UP_RUNNING, status: 'Unknown', reason: 'RemoveFailed' },
  none: { type: UP_RUNNING, status: 'Unknown', reason: 'CheckFailed' },
}

async function forget(cluster: Cluster, { client, signal }: Context): Promise<void> {
  const changed = structuredClone(cluster)
  if (removeFinalizer(changed, UP_FINALIZER)) await client.update(Clusters, changed, { signal })
}
