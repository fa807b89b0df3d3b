/** How etcd comes to have the members it should: who must not leave, who leaves, who joins, and who starts again. Pure. */
import type { DesiredHost, LeavingHost } from './desired.ts'
import { changed, hostsOf, type Planning, retireSteps, seenOf, serveSteps, wave } from './planning.ts'
import { MACHINES_AT_ONCE, type Step, type Track, type Wave } from './step.ts'

/**
 * The members of a new cluster find each other, so none is well before most are there: they are started first and asked
 * afterwards. A cluster that is at work first loses those that leave, so that the dead do not count, then gets one member at a
 * time, and each is well before the next.
 */
export function etcdWaves(planning: Planning): Wave[] {
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
      'members that leave',
      1,
      goneMembers(planning).map((host) => leaveSteps(planning, host)),
    ),
    // Who joins comes first: with more members one can start again and the others are still a majority.
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
              describe: `wait until ${spec.name} is well`,
              action: { type: 'healthy', service: spec.name, health },
            },
          ],
        ],
  )
}

/** Machines that have a member and are to have none. Those that do not answer come first: they count against the majority. */
export function goneMembers({ desired, observed }: Planning): (DesiredHost | LeavingHost)[] {
  const { peerUrl } = desired.etcd
  const staying = new Set(hostsOf(desired, 'etcd').map(peerUrl))
  const without = desired.hosts.filter(({ roles }) => !roles.includes('etcd'))
  const isMember = (url: string): boolean => observed.members?.some(({ peerUrls }) => peerUrls.includes(url)) === true
  const gone = [...desired.leaving, ...without].filter((host) => isMember(peerUrl(host)) && !staying.has(peerUrl(host)))
  const isDead = ({ name }: { name: string }): boolean =>
    seenOf(observed, name).services[desired.etcd.service]?.isRunning !== true
  return gone.toSorted((a, b) => Number(isDead(b)) - Number(isDead(a)))
}

/** A machine whose member has a name, and runs: one by which others are asked for. */
function stayingMembers({ desired, observed }: Planning): DesiredHost[] {
  const { peerUrl, service } = desired.etcd
  return hostsOf(desired, 'etcd').filter(
    (host) =>
      seenOf(observed, host.name).services[service]?.isRunning === true &&
      observed.members?.some(({ name, peerUrls }) => name !== '' && peerUrls.includes(peerUrl(host))),
  )
}

function leaveSteps(planning: Planning, host: DesiredHost | LeavingHost): Step[] {
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
 * One that was added and never started has no name yet, and still has to be told what it joins. Data that lies there is of
 * another cluster or of a member that has left: etcd would not start with it.
 */
function joinSteps(planning: Planning, host: DesiredHost): Step[] {
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

/** Why planes cannot become what the file says without losing what they hold; sentences. */
export function membershipFaults(planning: Planning): string[] {
  const { desired, options } = planning
  const { built, leaving } = desired
  if (built === undefined) return []
  const leavers = leaving.filter(({ roles }) => roles.some((role) => role !== 'worker')).map(({ name }) => name)
  if (options.workersOnly && leavers.length > 0)
    return [`${leavers.join(', ')}: the machine leaves etcd or the control plane, which --update-only leaves alone`]
  const keeps = (role: 'etcd' | 'controlplane'): boolean =>
    ![...built.values()].some((roles) => roles.includes(role)) ||
    hostsOf(desired, role).some(({ name }) => built.get(name)?.includes(role))
  return [
    ...(leaving.length > 0 && planning.observed.nodes === undefined
      ? ['No API server answers: nobody can leave the cluster; mend it first, with the machines that leave in the file']
      : []),
    ...etcdFaults(planning, keeps('etcd')),
    ...(keeps('controlplane')
      ? []
      : [
          'No machine stays in the control plane: nobody would know the cluster; keep one until its successors are at work',
        ]),
  ]
}

function etcdFaults(planning: Planning, keeps: boolean): string[] {
  const { desired, observed } = planning
  const { members } = observed
  if (members === undefined) {
    if (!keeps)
      return ['No machine stays in etcd: all that it holds would be lost; keep one until its successors have joined']
    const had = [...(desired.built ?? [])].filter(([, roles]) => roles.includes('etcd')).map(([name]) => name)
    const have = hostsOf(desired, 'etcd').map(({ name }) => name)
    const isSame = had.toSorted().join() === have.toSorted().join()
    return isSame ? [] : ['etcd does not answer: nobody can join or leave it; mend it, or restore a snapshot']
  }
  const gone = goneMembers(planning)
  const left = members.length - gone.length
  const running = stayingMembers(planning).length
  if (gone.length === 0 || running > left / 2) return []
  return [`etcd would lose its majority: of ${left} members that stay ${running} run`]
}
