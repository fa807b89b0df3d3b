/** Plans the removal of a cluster from its machines. Pure. */
import type { DesiredCluster, LeavingHost } from '../desired.ts'
import { NO_MANIFEST, type ObservedHost } from './observed.ts'
import { MACHINES_AT_ONCE, type Plan, type Step } from './step.ts'

/** Workers first, so that pods can terminate gracefully; then the control plane with etcd. */
export function planRemoval(
  { hosts: wanted, leaving, home }: Pick<DesiredCluster, 'hosts' | 'leaving' | 'home'>,
  observed: ReadonlyMap<string, ObservedHost>,
): Plan {
  const names = new Set(wanted.map(({ name }) => name))
  const hosts = [...wanted, ...leaving.filter(({ name }) => !names.has(name))]
  const planes = [
    { name: 'workers', hosts: hosts.filter(({ roles }) => !roles.includes('controlplane') && !roles.includes('etcd')) },
    { name: 'control plane', hosts: hosts.filter(({ roles }) => roles.includes('controlplane')) },
    { name: 'etcd', hosts: hosts.filter(({ roles }) => roles.includes('etcd') && !roles.includes('controlplane')) },
  ]
  const waves = planes.map(({ name, hosts: own }) => ({
    name,
    width: MACHINES_AT_ONCE,
    // A failure of one machine does not stop the others.
    tolerates: own.length,
    tracks: own
      .filter((host) => observed.get(host.name)?.state === 'seen')
      .map((host): Step[] => [
        removalStep({ name: host.name, ending: host.ending, services: servicesOf(observed.get(host.name)) }, home),
      ]),
  }))
  const faults = hosts.flatMap(({ name }) => {
    const found = observed.get(name)
    return found?.state === 'unreachable' ? [`${name}: ${found.reason}`] : []
  })
  return { waves: waves.filter(({ tracks }) => tracks.length > 0), faults: [], notes: faults }
}

/** From the machine's manifest, in reverse order. */
function servicesOf(found: ObservedHost | undefined): string[] {
  return (found?.state === 'seen' ? found.manifest : NO_MANIFEST).services.toReversed()
}

export function removalStep(
  { name, ending, services }: Pick<LeavingHost, 'name' | 'ending'> & { readonly services: readonly string[] },
  home: string,
): Step {
  return {
    host: name,
    describe: 'remove everything of the cluster',
    action: { type: 'restore', home, services, before: Object.values(ending) },
  }
}
