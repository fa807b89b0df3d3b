/** The scheduler put together: what it follows, its picture of the cluster, its queue, its profiles. */
import { Namespaces, type Pod, Pods, Services } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient } from '#client/api-client.ts'
import { SeriesRecorder } from '#client/event-series.ts'
import { Informers } from '#client/informers.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'
import { kindKey } from '#meta/kind.ts'

import { Cluster } from './cluster.ts'
import type { Consideration } from './deliberation.ts'
import { type Extender, preemptBy } from './extender.ts'
import { feed } from './feed.ts'
import type { Handle, Meter, PluginRefusal, Wake } from './framework.ts'
import { meteredProfile, statusOf } from './metering.ts'
import { UNMETERED } from './meters.ts'
import { Nominations } from './nominations.ts'
import type { PodInfo } from './pod-info.ts'
import type { Profile } from './profile.ts'
import { createProfile, DEFAULT_PROFILE, type ProfileSettings } from './profiles.ts'
import { SchedulingQueue } from './queue.ts'
import { Scheduler } from './scheduler.ts'

export interface SchedulerOptions {
  readonly client: ApiClient
  /** What events are written with, where they must not hold up the rest; default: the same. */
  readonly eventClient?: ApiClient
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  readonly isEnabled: (gate: string) => boolean
  /** What events are said to come from, after the profile's name. */
  readonly host: string
  readonly profiles?: readonly ProfileSettings[]
  /** Which pods are placed; those of its profiles unless told otherwise. */
  readonly isOurs?: (pod: Pod) => boolean
  readonly initialBackoffMs?: number
  readonly maxBackoffMs?: number
  readonly meter?: Meter
  /** Who else has a say, over HTTP. */
  readonly extenders?: readonly Extender[]
  /** How long a pod that fits nowhere waits at most before it is tried again. Default 5 minutes. */
  readonly parkedAtMostMs?: number
  /** Until then it follows what happens and decides nothing: somebody else leads. */
  readonly mayBegin?: Promise<void>
}

export interface RunningScheduler {
  readonly queue: SchedulingQueue
  readonly cluster: Cluster
  /** What would be decided about a pod now, and why. Undefined: nobody decides about it. */
  readonly consider: (pod: Pod) => Consideration | undefined
  /** What is stored, as far as it has heard. */
  readonly of: Handle['of']
  /** Everything that was there has been seen. */
  readonly synced: Promise<void>
  readonly isSynced: () => boolean
  /** How many are on their way to their nodes. */
  readonly binding: () => number
  /** Resolves when nothing is under way any more, after the signal. */
  readonly ended: () => Promise<void>
}

export function startScheduler(options: SchedulerOptions): RunningScheduler {
  const { client, clock, random, log, signal, isEnabled, meter = UNMETERED } = options
  const settings = options.profiles ?? [DEFAULT_PROFILE]
  const informers = informersFor(options)
  const cluster = new Cluster((name) => informers.of(Namespaces).get(name)?.metadata.labels)
  const nominations = new Nominations()
  const { of, seen } = following(informers)
  of(Services).addIndex('namespace', ({ metadata }) => [metadata.namespace ?? ''])
  const recorders = recordersFor(options, settings, () => scheduler.traffic.calm())
  const shared = { ...consulting(options, cluster), client, clock, random, log, isEnabled, of, nominations, meter }
  const handleOf = (profile: string): Handle => ({
    ...shared,
    record: (regarding, note) => recorders.get(profile)?.record(regarding, note),
    alongside: (doing) => scheduler.alongside(doing),
    activate: (uids) => queue.activate(uids),
    holdUp: (uid, why) => scheduler.holdUp(uid, why),
  })
  const profiles = new Map(settings.map((one) => [one.name, profileFrom(one, handleOf(one.name))]))
  const profileOf = (pod: Pod): Profile | undefined => profiles.get(pod.spec.schedulerName ?? DEFAULT_PROFILE.name)
  const queue = createQueue(options, profiles, profileOf, () => scheduler.wake())
  const scheduler = new Scheduler({
    handle: handleOf(DEFAULT_PROFILE.name),
    cluster,
    queue,
    nominations,
    profiles,
    extenders: options.extenders ?? [],
    recorderOf: (name) => recorders.get(name) as SeriesRecorder,
    signal,
  })
  const { isOurs = (pod) => profileOf(pod) !== undefined } = options
  feed({ cluster, queue, nominations, isOurs, of, clock, meter, isEnabled, kinds: awaitedKinds(profiles.values()) })
  let hasSeen = false
  const synced = seen().then(() => void (hasSeen = true))
  void Promise.all([synced, options.mayBegin]).then(() => scheduler.begin())
  return {
    queue,
    cluster,
    consider: (pod) => scheduler.consider(pod),
    of,
    synced,
    isSynced: () => hasSeen,
    binding: () => scheduler.binding,
    async ended() {
      queue.close()
      await scheduler.settled()
      await Promise.all([...Array.from(recorders.values(), (recorder) => recorder.end()), informers.ended()])
    },
  }
}

/** The cluster, and whom to ask about preemption: extenders, where some have a say in it. */
function consulting(
  { extenders = [], log }: SchedulerOptions,
  cluster: Cluster,
): Pick<Handle, 'cluster' | 'reconsider'> {
  if (!extenders.some(({ preempts }) => preempts)) return { cluster }
  return { cluster, reconsider: (pod, candidates) => preemptBy(extenders, pod, candidates, { cluster, log }) }
}

function profileFrom(settings: ProfileSettings, handle: Handle): Profile {
  const profile = createProfile(settings, handle)
  return handle.meter === UNMETERED ? profile : meteredProfile(profile, handle)
}

/** Everything that somebody asked for, and when all of it has been seen. */
function following(informers: Informers): { readonly of: Handle['of']; readonly seen: () => Promise<void> } {
  const followed = new Set<Kind>()
  return {
    of(kind) {
      followed.add(kind)
      return informers.of(kind)
    },
    seen: () => informers.synced([...followed]),
  }
}

function informersFor({ client, random, signal, log }: SchedulerOptions): Informers {
  return new Informers({
    client,
    random,
    signal,
    onError: (error, kind) => log.info('A collection could not be followed', { kind: kindKey(kind), error }),
  })
}

function createQueue(
  options: SchedulerOptions,
  profiles: ReadonlyMap<string, Profile>,
  profileOf: (pod: Pod) => Profile | undefined,
  ready: () => void,
): SchedulingQueue {
  const {
    clock,
    initialBackoffMs = 1000,
    maxBackoffMs = 10_000,
    parkedAtMostMs = 5 * 60_000,
    meter = UNMETERED,
  } = options
  const [first] = profiles.values()
  const wakes = new Map<string, readonly Wake[] | undefined>()
  for (const { name, plugins } of profiles.values()) {
    for (const {
      name: plugin,
      plugin: { wakes: own },
    } of plugins)
      wakes.set(`${name}\n${plugin}`, own)
  }
  return new SchedulingQueue({
    clock,
    initialBackoffMs,
    maxBackoffMs,
    parkedAtMostMs,
    compare: (a, b) => first?.queueSort.plugin.compare?.(a, b) ?? 0,
    preEnqueue(pod) {
      const begunMs = clock.elapsed()
      const gate = gateOf(pod, profileOf(pod.pod))
      meter.ran('PreEnqueue', statusOf(gate), pod.pod.spec.schedulerName ?? '', clock.elapsed() - begunMs)
      return gate
    },
    meter,
    popsEarly: options.isEnabled('SchedulerPopFromBackoffQ'),
    isGrouped: ({ pod }) => pod.spec.schedulingGroup !== undefined && options.isEnabled('GenericWorkload'),
    wakesOf: ({ pod }, plugin) => wakes.get(`${profileOf(pod)?.name ?? ''}\n${plugin}`),
    ready,
  })
}

function gateOf(pod: PodInfo, profile: Profile | undefined): PluginRefusal | undefined {
  for (const { name, plugin } of profile?.preEnqueue ?? []) {
    const verdict = plugin.preEnqueue?.(pod)
    if (verdict !== undefined) return { ...verdict, plugin: name }
  }
  return undefined
}

/** Every kind that some plugin waits for, once. */
function awaitedKinds(profiles: Iterable<Profile>): Kind[] {
  const wakes = Array.from(profiles, ({ plugins }) => plugins.flatMap(({ plugin }) => plugin.wakes ?? [])).flat()
  const kinds = new Map(wakes.flatMap(({ on }) => (typeof on === 'string' ? [] : [[kindKey(on), on] as const])))
  kinds.delete(kindKey(Pods))
  return [...kinds.values()]
}

/** By the name of the profile that they speak for. */
function recordersFor(
  { client: own, eventClient: client = own, host, log }: SchedulerOptions,
  profiles: readonly ProfileSettings[],
  calm: () => Promise<void> | undefined,
): Map<string, SeriesRecorder> {
  const onError = (error: unknown): void => log.info('An event could not be written', { error })
  const recorderOf = (name: string): SeriesRecorder =>
    new SeriesRecorder({ client, controller: name, instance: `${name}-${host}`, onError, calm })
  return new Map(profiles.map(({ name }) => [name, recorderOf(name)]))
}
