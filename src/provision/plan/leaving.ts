/** Plans how machines leave a cluster: drain, restore the machine, delete the Node. Pure. */
import type { LeavingHost } from '../desired.ts'
import { drainStep } from './node-waves.ts'
import { manifestOf, type PlanContext, wave } from './planning.ts'
import { removalStep } from './removal.ts'
import type { Step, Wave } from './step.ts'

/** Comes last, when the successors are running. */
export function leavingWave(planning: PlanContext): Wave {
  const { leaving, upgrade } = planning.desired
  return wave(
    'leaving machines',
    upgrade.workers,
    leaving.map((host) => leavingSteps(planning, host)),
  )
}

/**
 * The Node is deleted after the machine is cleaned; a running kubelet would recreate it. An unreachable machine is not
 * drained.
 */
function leavingSteps({ desired, observed }: PlanContext, host: LeavingHost): Step[] {
  const { name } = host
  const node = observed.nodes?.get(name)
  const isThere = observed.hosts.get(name)?.state === 'seen'
  const isReplaced = desired.hosts.some((other) => other.name === name)
  if (isReplaced) return []
  const services = manifestOf(observed, name).services.toReversed()
  return [
    ...(node === undefined ? [] : [drainStep(name, isThere && node.isReady ? 'clear' : 'cordon')]),
    ...(isThere ? [removalStep({ ...host, services }, desired.home)] : []),
    ...(node === undefined
      ? []
      : [{ host: name, describe: 'delete the node', action: { type: 'delete-node', node: name } } as const]),
  ]
}

/** Notices about machines that cannot be restored. */
export function leavingNotes({ desired, observed }: PlanContext): string[] {
  return desired.leaving.flatMap(({ name, address }) => {
    if (desired.hosts.some((other) => other.name === name))
      return [`${name} was at ${address}: that machine leaves the cluster, and its files stay`]
    const found = observed.hosts.get(name)
    return found?.state === 'unreachable'
      ? [`${name} leaves the cluster but is unreachable, so its files stay: ${found.reason}`]
      : []
  })
}
