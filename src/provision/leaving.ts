/** Machines that the file no longer names: pods go elsewhere, the machine becomes what it was, the Node goes. Pure. */
import type { LeavingHost } from './desired.ts'
import { drainStep } from './node-waves.ts'
import { manifestOf, type Planning, wave } from './planning.ts'
import { removalStep } from './removal.ts'
import type { Step, Wave } from './step.ts'

/** Last of all: whoever takes over from them is at work by then. */
export function leavingWave(planning: Planning): Wave {
  const { leaving, upgrade } = planning.desired
  return wave(
    'machines that leave',
    upgrade.workers,
    leaving.map((host) => leavingSteps(planning, host)),
  )
}

/** The node goes after the machine: a kubelet that still runs would bring it back. One that cannot be asked evicts nobody. */
function leavingSteps({ desired, observed }: Planning, host: LeavingHost): Step[] {
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

/** What people should know of those that cannot be made what they were. */
export function leavingNotes({ desired, observed }: Planning): string[] {
  return desired.leaving.flatMap(({ name, address }) => {
    if (desired.hosts.some((other) => other.name === name))
      return [`${name} was at ${address}: that machine leaves the cluster, and keeps what is on it`]
    const found = observed.hosts.get(name)
    return found?.state === 'unreachable'
      ? [`${name} leaves the cluster, cannot be reached, and keeps what is on it: ${found.reason}`]
      : []
  })
}
