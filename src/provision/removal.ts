/** How machines become what they were. Pure. */
import type { DesiredCluster, DesiredHost } from './desired.ts'
import type { ObservedHost } from './observed.ts'
import { MACHINES_AT_ONCE } from './plan.ts'
import type { Plan, Step } from './step.ts'

/** Ends what no service can end, before services go: with the machine's own copy of the program. */
export type Ending = (host: DesiredHost) => readonly (readonly string[])[]

/** Workers first, so that pods have somebody to say goodbye to; then the control plane with etcd. */
export function planRemoval(
  { hosts, home }: Pick<DesiredCluster, 'hosts' | 'home'>,
  observed: ReadonlyMap<string, ObservedHost>,
  ending: Ending,
): Plan {
  const planes = [
    { name: 'workers', hosts: hosts.filter(({ roles }) => !roles.includes('controlplane') && !roles.includes('etcd')) },
    { name: 'control plane', hosts: hosts.filter(({ roles }) => roles.includes('controlplane')) },
    { name: 'etcd', hosts: hosts.filter(({ roles }) => roles.includes('etcd') && !roles.includes('controlplane')) },
  ]
  const waves = planes.map(({ name, hosts: own }) => ({
    name,
    width: MACHINES_AT_ONCE,
    // One that fails keeps no other.
    tolerates: own.length,
    tracks: own
      .filter((host) => observed.get(host.name)?.state === 'seen')
      .map((host): Step[] => [removalStep(host, home, ending)]),
  }))
  const faults = hosts.flatMap(({ name }) => {
    const found = observed.get(name)
    return found?.state === 'unreachable' ? [`${name}: ${found.reason}`] : []
  })
  return { waves: waves.filter(({ tracks }) => tracks.length > 0), faults: [], notes: faults }
}

export function removalStep(host: DesiredHost, home: string, ending: Ending): Step {
  return {
    host: host.name,
    describe: 'remove all that was made',
    action: {
      type: 'restore',
      home,
      services: host.services.map(({ spec }) => spec.name).toReversed(),
      before: ending(host),
    },
  }
}
