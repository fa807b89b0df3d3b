/** Plans changes of etcd membership: which members leave, join and restart, and in which order. Pure. */
import type { DesiredHost, LeavingHost } from '../desired.ts'
import { changed, hostsOf, type PlanContext, retireSteps, seenOf, serveSteps, wave } from './planning.ts'
import { MACHINES_AT_ONCE, type Step, type Track, type Wave } from './step.ts'

/**
 * Members of a new cluster need each other, so all start before the health check. In a running cluster, members first
 * leave, so that dead ones do not count; then members join one at a time, each healthy before the next.
 */
export function etcdWaves(planning: PlanContext): Wave[] {
  const hosts = hostsOf(planning.desired, 'etcd').filter((host) => changed(planning, host, 'etcd').length > 0)
  const serve = (host: DesiredHost, waits: boolean): Step[] => serveSteps(host, changed(planning, host, 'etcd'), waits)
  if (planning.observed.members === undefined)
    return [
      wave(
        'etcd',
        1,
        hosts.map((host) => serve(host, false)),
      ),
      wave('health of etcd', MACHINES_AT_ONCE, hosts.flatMap(healthTracks)),
    ]
  return [
    wave(
      'leaving etcd members',
      1,
      goneMembers(planning).map((host) => leaveSteps(planning, host)),
    ),
    // Joining comes first: with more members the majority survives each restart.
    wave(
      'etcd',
      1,
      hosts
        .map((host) => ({ host, joining: joinSteps(planning, host) }))
        .toSorted((a, b) => Number(b.joining.length > 0) - Number(a.joining.length > 0))
        .map(({ host, joining }) => [...joining, ...serve(host, true)]),
    ),
  ]
}

function healthTracks(host: DesiredHost): Track[] {
  return host.services.flatMap(({ plane, spec, health }): Track[] =>
    plane !== 'etcd' || health === undefined
      ? []
      : [
          [
            {
              host: host.name,
              describe: `wait until ${spec.name} is healthy`,
              action: { type: 'healthy', service: spec.name, health },
            },
          ],
        ],
  )
}

/** Machines with a member that must leave. Unreachable ones come first, because they count against the majority. */
export function goneMembers({ desired, observed }: PlanContext): (DesiredHost | LeavingHost)[] {
  const { peerUrl } = desired.etcd
  const staying = new Set(hostsOf(desired, 'etcd').map(peerUrl))
  const without = desired.hosts.filter(({ roles }) => !roles.includes('etcd'))
  const isMember = (url: string): boolean => observed.members?.some(({ peerUrls }) => peerUrls.includes(url)) === true
  const gone = [...desired.leaving, ...without].filter((host) => isMember(peerUrl(host)) && !staying.has(peerUrl(host)))
  const isDead = ({ name }: { name: string }): boolean =>
    seenOf(observed, name).services[desired.etcd.service]?.isRunning !== true
  return gone.toSorted((a, b) => Number(isDead(b)) - Number(isDead(a)))
}

/** A machine with a named, running member, through which others are queried. */
function stayingMembers({ desired, observed }: PlanContext): DesiredHost[] {
  const { peerUrl, service } = desired.etcd
  return hostsOf(desired, 'etcd').filter(
    (host) =>
      seenOf(observed, host.name).services[service]?.isRunning === true &&
      observed.members?.some(({ name, peerUrls }) => name !== '' && peerUrls.includes(peerUrl(host))),
  )
}

function leaveSteps(planning: PlanContext, host: DesiredHost | LeavingHost): Step[] {
  const { health, peerUrl } = planning.desired.etcd
  const [through] = stayingMembers(planning)
  if (through === undefined) return []
  const action = {
    type: 'leave-etcd',
    through: through.name,
    health: health(through),
    peerUrl: peerUrl(host),
  } as const
  return [{ host: host.name, describe: 'leave etcd', action }]
}

/**
 * A member without a name was added but never started, and still needs the initial members. Existing data belongs to
 * another cluster or a former member, with which etcd would not start.
 */
function joinSteps(planning: PlanContext, host: DesiredHost): Step[] {
  const { desired, observed } = planning
  const { health, memberName, peerUrl, joiningFile, service, dataDir } = desired.etcd
  const url = peerUrl(host)
  const known = observed.members?.find(({ peerUrls }) => peerUrls.includes(url))
  if (known !== undefined && known.name !== '') return []
  const [through] = stayingMembers(planning)
  if (through === undefined) return []
  const wasServed = seenOf(observed, host.name).services[service] !== undefined
  const join = {
    type: 'join-etcd',
    through: through.name,
    health: health(through),
    name: memberName(host),
    peerUrl: url,
    file: joiningFile,
  } as const
  return [
    ...(wasServed ? retireSteps(host, service) : []),
    { host: host.name, describe: 'clear the data of etcd', action: { type: 'remove', paths: [dataDir] } },
    { host: host.name, describe: 'join etcd', action: join },
  ]
}

/** The reasons why the planes cannot change without data loss, as sentences. */
export function membershipFaults(planning: PlanContext): string[] {
  const { desired, options } = planning
  const { built, leaving } = desired
  if (built === undefined) return []
  const leavers = leaving.filter(({ roles }) => roles.some((role) => role !== 'worker')).map(({ name }) => name)
  if (options.workersOnly && leavers.length > 0)
    return [`${leavers.join(', ')}: the machine leaves etcd or the control plane, which --update-only does not change`]
  const keeps = (role: 'etcd' | 'controlplane'): boolean =>
    ![...built.values()].some((roles) => roles.includes(role)) ||
    hostsOf(desired, role).some(({ name }) => built.get(name)?.includes(role))
  return [
    ...(leaving.length > 0 && planning.observed.nodes === undefined
      ? [
          'No API server responds, so no machine can leave the cluster; repair it first, with the leaving machines in the file',
        ]
      : []),
    ...etcdFaults(planning, keeps('etcd')),
    ...(keeps('controlplane')
      ? []
      : [
          'No machine stays in the control plane: the cluster would be lost; keep one until its successors are running',
        ]),
  ]
}

function etcdFaults(planning: PlanContext, keeps: boolean): string[] {
  const { desired, observed } = planning
  const { members } = observed
  if (members === undefined) {
    if (!keeps)
      return ['No machine stays in etcd: all its data would be lost; keep one until its successors have joined']
    const had = [...(desired.built ?? [])].filter(([, roles]) => roles.includes('etcd')).map(([name]) => name)
    const have = hostsOf(desired, 'etcd').map(({ name }) => name)
    const isSame = had.toSorted().join() === have.toSorted().join()
    return isSame ? [] : ['etcd does not respond: no member can join or leave; repair it, or restore a snapshot']
  }
  const gone = goneMembers(planning)
  const left = members.length - gone.length
  const running = stayingMembers(planning).length
  if (gone.length === 0 || running > left / 2) return []
  return [`etcd would lose its majority: of ${left} members that stay ${running} run`]
}
