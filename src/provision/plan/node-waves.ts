/** Plans upgrades of nodes within the limit of unavailable nodes. Pure. */
import type { DesiredHost, DesiredService, Plane } from '../desired.ts'
import { differentNode } from './node-difference.ts'
import type { ObservedNode } from './observed.ts'
import { changed, clearingSteps, clearsWith, type PlanContext, serveSteps, wave } from './planning.ts'
import { type DrainMode, MACHINES_AT_ONCE, type Step, type Track, type Wave } from './step.ts'

/** The annotation that marks nodes cordoned by the builder. */
export const CORDONED = 'build.hyperkube.io/cordoned'

interface NodeWork {
  readonly host: DesiredHost
  readonly node: ObservedNode | undefined
  /** Nodes to restart. */
  readonly services: readonly DesiredService[]
  readonly serve: readonly Step[]
}

function workOf(planning: PlanContext, host: DesiredHost): NodeWork {
  const services = changed(planning, host, 'worker')
  const clearing = clearsWith(planning, host) === 'worker' ? clearingSteps(planning, host) : []
  return {
    host,
    services,
    node: planning.observed.nodes?.get(host.name),
    serve: [...clearing, ...serveSteps(host, services)],
  }
}

/**
 * New nodes start together. Nodes with pods restart within the limit: control planes first, then etcd one by one, then
 * the others. Unhealthy nodes do not count, and changes without effect on pods need no drain.
 */
export function workerWaves(planning: PlanContext): Wave[] {
  const { options } = planning
  const { upgrade } = planning.desired
  const all = planning.desired.hosts.map((host) => workOf(planning, host))
  const todo = all.filter(({ services }) => services.length > 0)
  const isFelt = ({ node, services }: NodeWork): boolean =>
    node?.isReady === true && services.some(({ isQuiet }) => isQuiet !== true)
  const inside = todo.filter(isFelt)
  // Includes nodes with current services, because an interrupted run may have ended before they were ready.
  const unready = all.filter(({ node }) => node?.isReady !== true)
  // The annotation identifies nodes that an interrupted upgrade left cordoned.
  const left = all.filter(
    ({ services, node }) => services.length === 0 && node?.isReady === true && node.annotations[CORDONED] !== undefined,
  )
  const isOf =
    (role: Plane) =>
    ({ host }: NodeWork): boolean =>
      host.roles.includes(role)
  const planes = Map.groupBy([...inside, ...left], (work) =>
    isOf('controlplane')(work) ? 'controlplane' : isOf('etcd')(work) ? 'etcd' : 'worker',
  )
  const upgradeWave = (name: string, plane: Plane, width: number): Wave =>
    wave(
      name,
      width,
      (planes.get(plane) ?? []).map((work) => upgradeTrack(planning, work)),
      // Like RKE, as many workers may fail as may be unavailable.
      plane === 'worker' ? Math.max(0, upgrade.workers - 1) : 0,
    )
  return [
    wave(
      'worker plane',
      MACHINES_AT_ONCE,
      todo.filter((work) => !isFelt(work)).map(({ serve }) => serve),
    ),
    wave(
      'nodes ready',
      MACHINES_AT_ONCE,
      unready.map(({ host, node }) => [readyStep(host.name, node?.annotations[CORDONED] !== undefined)]),
    ),
    upgradeWave('upgrade of control plane nodes', 'controlplane', upgrade.controlPlanes),
    upgradeWave('upgrade of etcd nodes', 'etcd', 1),
    // Without a drain no node is unavailable.
    upgradeWave('upgrade of nodes', 'worker', options.keepsPods === true ? MACHINES_AT_ONCE : upgrade.workers),
  ]
}

function upgradeTrack({ desired, options }: PlanContext, { host, services, serve }: NodeWork): Track {
  if (services.length === 0) return [readyStep(host.name, true)]
  if (options.keepsPods === true) return [...serve, readyStep(host.name, false)]
  return [drainStep(host.name, desired.upgrade.drains ? 'evict' : 'cordon'), ...serve, readyStep(host.name, true)]
}

function readyStep(name: string, uncordons: boolean): Step {
  return { host: name, describe: 'wait until the node is ready', action: { type: 'ready', node: name, uncordons } }
}

export function drainStep(name: string, mode: DrainMode): Step {
  const describe = mode === 'cordon' ? 'cordon the node' : 'drain the node'
  return { host: name, describe, action: { type: 'drain', node: name, mode } }
}

export function nodeWave({ desired, observed }: PlanContext): Wave {
  const tracks = desired.hosts.flatMap((host): Track[] => {
    const difference = differentNode(host.node, observed.nodes?.get(host.name))
    if (difference === undefined) return []
    const action = { type: 'node', node: host.name, desired: host.node, dropped: difference.dropped } as const
    return [[{ host: host.name, describe: `set ${difference.describe}`, action }]]
  })
  return wave('labels and taints', MACHINES_AT_ONCE, tracks)
}
