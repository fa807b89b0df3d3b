/** How nodes come to run what they should, without more of them away than the file allows. Pure. */
import type { DesiredHost, DesiredService, Plane } from './desired.ts'
import { differentNode } from './node-difference.ts'
import type { ObservedNode } from './observed.ts'
import { changed, clearingSteps, clearsWith, type Planning, serveSteps, wave } from './planning.ts'
import { type DrainMode, MACHINES_AT_ONCE, type Step, type Track, type Wave } from './step.ts'

/** Says that it was us who cordoned the node. */
export const CORDONED = 'build.hyperkube.io/cordoned'

interface NodeWork {
  readonly host: DesiredHost
  readonly node: ObservedNode | undefined
  /** To be started again. */
  readonly services: readonly DesiredService[]
  readonly serve: readonly Step[]
}

function workOf(planning: Planning, host: DesiredHost): NodeWork {
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
 * New nodes all at once. Those that have pods as many as may be away: first machines of the control plane, then those of etcd one
 * by one, then the rest. Nodes that are not well have no pods to lose, and what pods do not feel is done without asking them.
 */
export function workerWaves(planning: Planning): Wave[] {
  const { options } = planning
  const { upgrade } = planning.desired
  const all = planning.desired.hosts.map((host) => workOf(planning, host))
  const todo = all.filter(({ services }) => services.length > 0)
  const isFelt = ({ node, services }: NodeWork): boolean =>
    node?.isReady === true && services.some(({ isQuiet }) => isQuiet !== true)
  const inside = todo.filter(isFelt)
  // Also those whose services are as they should be: what was interrupted may have ended before they were ready.
  const unready = all.filter(({ node }) => node?.isReady !== true)
  // Who was left cordoned by an upgrade that was interrupted is found by its mark.
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
      // As RKE has it: of workers as many may fail as may be away.
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
    // Nobody is away when pods stay where they are.
    upgradeWave('upgrade of nodes', 'worker', options.keepsPods === true ? MACHINES_AT_ONCE : upgrade.workers),
  ]
}

function upgradeTrack({ desired, options }: Planning, { host, services, serve }: NodeWork): Track {
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

export function nodeWave({ desired, observed }: Planning): Wave {
  const tracks = desired.hosts.flatMap((host): Track[] => {
    const difference = differentNode(host.node, observed.nodes?.get(host.name))
    if (difference === undefined) return []
    const action = { type: 'node', node: host.name, desired: host.node, dropped: difference.dropped } as const
    return [[{ host: host.name, describe: `set ${difference.describe}`, action }]]
  })
  return wave('labels and taints', MACHINES_AT_ONCE, tracks)
}
