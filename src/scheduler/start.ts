/** Starts a scheduler: creates its informers, cache, queue and profiles. */
import { Namespaces, type Pod, Pods, Services } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient } from '#client/api-client.ts'
import { SeriesRecorder } from '#client/events/event-series.ts'
import { Informers } from '#client/informers.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'
import { kindKey } from '#meta/kind.ts'

import { Cluster } from './cluster/cluster.ts'
import { Nominations } from './cluster/nominations.ts'
import type { PodInfo } from './cluster/pod-info.ts'
import { type Extender, preemptBy } from './decision/extender.ts'
import { meteredProfile, statusOf } from './decision/metering.ts'
import { UNMETERED } from './decision/meters.ts'
import type { ClusterEventWithHint, Handle, Meter, PluginRefusal } from './framework/framework.ts'
import type { Profile } from './framework/profile.ts'
import { createProfile, DEFAULT_PROFILE, type ProfileSettings } from './profiles.ts'
import { addEventHandlers } from './queue/event-handlers.ts'
import { SchedulingQueue } from './queue/queue.ts'
import { Scheduler } from './scheduler.ts'
import type { DryRunResult } from './scheduling-cycle/scheduling-cycle.ts'

export interface SchedulerOptions {
  readonly client: ApiClient
  /** The client for events, so that they do not compete with bindings. Default: `client`. */
  readonly eventClient?: ApiClient
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  readonly isEnabled: (gate: string) => boolean
  /** The suffix of the event source, after the profile's name. */
  readonly host: string
  readonly profiles?: readonly ProfileSettings[]
  /** Which pods to schedule. Default: those of its profiles. */
  readonly isOurs?: (pod: Pod) => boolean
  readonly initialBackoffMs?: number
  readonly maxBackoffMs?: number
  readonly meter?: Meter
  /** HTTP extenders, in order. */
  readonly extenders?: readonly Extender[]
  /** The longest time of an unschedulable pod without a retry. Default 5 minutes. */
  readonly maxUnschedulableMs?: number
  /** Resolves when this instance is the leader. Until then it only watches. */
  readonly leading?: Promise<void>
}

export interface RunningScheduler {
  readonly queue: SchedulingQueue
  readonly cluster: Cluster
  /** Decides about a pod without acting. Undefined: no profile is responsible. */
  readonly dryRun: (pod: Pod) => DryRunResult | undefined
  /** The informer of a kind. */
  readonly of: Handle['of']
  /** All caches have synced. */
  readonly synced: Promise<void>
  readonly isSynced: () => boolean
  /** The number of running binding cycles. */
  readonly binding: () => number
  /** Resolves when no background work is left, after the signal. */
  readonly ended: () => Promise<void>
}

export function startScheduler(options: SchedulerOptions): RunningScheduler {
  const { client, clock, random, log, signal, isEnabled, meter = UNMETERED } = options
  const settings = options.profiles ?? [DEFAULT_PROFILE]
  const informers = informersFor(options)
  const cluster = new Cluster((name) => informers.of(Namespaces).get(name)?.metadata.labels)
  const nominations = new Nominations()
  const { of, seen } = trackInformers(informers)
  of(Services).addIndex('namespace', ({ metadata }) => [metadata.namespace ?? ''])
  const recorders = recordersFor(options, settings, () => scheduler.bindingLimiter.idle())
  const shared = { ...preemptionOf(options, cluster), client, clock, random, log, isEnabled, of, nominations, meter }
  const handleOf = (profile: string): Handle => ({
    ...shared,
    record: (regarding, note) => recorders.get(profile)?.record(regarding, note),
    runInBackground: (doing) => scheduler.runInBackground(doing),
    activate: (uids) => queue.activate(uids),
    cancelBinding: (uid, why) => scheduler.cancelBinding(uid, why),
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
  addEventHandlers({ cluster, queue, nominations, isOurs, of, clock, meter, isEnabled, kinds: eventKinds(profiles) })
  let hasSeen = false
  const synced = seen().then(() => void (hasSeen = true))
  void Promise.all([synced, options.leading]).then(() => scheduler.begin())
  return {
    queue,
    cluster,
    dryRun: (pod) => scheduler.dryRun(pod),
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

/** The cluster cache, and the extenders' preemption call if one supports it. */
function preemptionOf(
  { extenders = [], log }: SchedulerOptions,
  cluster: Cluster,
): Pick<Handle, 'cluster' | 'processPreemption'> {
  if (!extenders.some(({ preempts }) => preempts)) return { cluster }
  return { cluster, processPreemption: (pod, candidates) => preemptBy(extenders, pod, candidates, { cluster, log }) }
}

function profileFrom(settings: ProfileSettings, handle: Handle): Profile {
  const profile = createProfile(settings, handle)
  return handle.meter === UNMETERED ? profile : meteredProfile(profile, handle)
}

/** The informers that plugins use, and a promise for their sync. */
function trackInformers(informers: Informers): { readonly of: Handle['of']; readonly seen: () => Promise<void> } {
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
    onError: (error, kind) => log.info('Failed to watch resource', { kind: kindKey(kind), error }),
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
    maxUnschedulableMs = 5 * 60_000,
    meter = UNMETERED,
  } = options
  const [first] = profiles.values()
  const eventsToRegister = new Map<string, readonly ClusterEventWithHint[] | undefined>()
  for (const { name, plugins } of profiles.values()) {
    for (const {
      name: plugin,
      plugin: { eventsToRegister: own },
    } of plugins)
      eventsToRegister.set(`${name}\n${plugin}`, own)
  }
  return new SchedulingQueue({
    clock,
    initialBackoffMs,
    maxBackoffMs,
    maxUnschedulableMs,
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
    registeredEvents: ({ pod }, plugin) => eventsToRegister.get(`${profileOf(pod)?.name ?? ''}\n${plugin}`),
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

/** Every kind that a plugin registered for, once. */
function eventKinds(profiles: ReadonlyMap<string, Profile>): Kind[] {
  const events = Array.from(profiles.values(), ({ plugins }) =>
    plugins.flatMap(({ plugin }) => plugin.eventsToRegister ?? []),
  ).flat()
  const kinds = new Map(
    events.flatMap(({ resource }) => (typeof resource === 'string' ? [] : [[kindKey(resource), resource] as const])),
  )
  kinds.delete(kindKey(Pods))
  return [...kinds.values()]
}

/** By profile name. */
function recordersFor(
  { client: own, eventClient: client = own, host, log }: SchedulerOptions,
  profiles: readonly ProfileSettings[],
  whenIdle: () => Promise<void> | undefined,
): Map<string, SeriesRecorder> {
  const onError = (error: unknown): void => log.info('Failed to write event', { error })
  const recorderOf = (name: string): SeriesRecorder =>
    new SeriesRecorder({ client, controller: name, instance: `${name}-${host}`, onError, whenIdle })
  return new Map(profiles.map(({ name }) => [name, recorderOf(name)]))
}
