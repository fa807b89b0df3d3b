/**
 * Runs controllers over one shared cache. Each has its own queue, credentials and events. A
 * controller starts when its caches have synced.
 */
import { mkdir, readFile, rm } from 'node:fs/promises'

import type { Kind } from '#apis/kinds.ts'
import { ApiClient, type ApiClientOptions } from '#client/api-client.ts'
import { EventRecorder } from '#client/events/event-recorder.ts'
import type { Listener } from '#client/informer.ts'
import { Informers } from '#client/informers.ts'
import { aborted } from '#lib/abort.ts'
import { createItemBackoff } from '#lib/backoff.ts'
import { activeCauses, type Cause, causeOf, KeyCauses, withCauses } from '#lib/causes.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Registry } from '#lib/metrics/metrics.ts'
import { parseFamily } from '#lib/metrics/table.ts'
import { registerWorkQueueMetrics } from '#lib/metrics/work-queue.ts'
import type { Random } from '#lib/random.ts'
import { WorkQueue, type WorkQueueMetrics } from '#lib/work-queue.ts'
import type { KubeObject } from '#meta/object.ts'
import { isConflict, isNamespaceTerminating } from '#meta/status.ts'
import {
  CONTROLLER_FAMILIES,
  type ControllerMeters,
  createControllerMeters,
} from '#model/metrics/controller-families.ts'

import { Cache } from './cache.ts'
import { type Controller, type ControllerContext, type Folders, NotYet, type Watch } from './controller.ts'
import { Expectations } from './expectations.ts'

export interface ManagerOptions<S = unknown> {
  readonly controllers: readonly Controller<S>[]
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** The connection of the controller with this account: with its own credentials, or the manager's. */
  readonly connect: (name: string) => Pick<ApiClientOptions, 'transport' | 'server' | 'bearerToken' | 'limits'>
  readonly userAgent: string
  readonly settings: S
  /** The workers of a controller that the settings choose. */
  readonly workersOf?: (controller: string, settings: S) => number | undefined
  /** Whether a feature gate is on; a controller with a disabled gate does not run. */
  readonly isEnabled: (gate: string) => boolean
  readonly readFile?: (path: string) => Promise<string>
  readonly folders?: Folders
  /** The CA bundle for the API server in PEM. */
  readonly serverBundle?: string
  /** The metrics registry. Default: a private one. */
  readonly registry?: Registry
}

const DEFAULT_WORKERS = 5

/**
 * Runs until the signal is aborted; resolves when all controllers have ended. Each starts when the caches of its kinds
 * have synced, independently of the others. Rejects if a controller finds its settings invalid.
 */
export async function runControllers<S>(options: ManagerOptions<S>, signal: AbortSignal): Promise<void> {
  const { random, log } = options
  const client = clientOf(options, 'shared-informers')
  const informers = new Informers({
    client,
    random,
    signal,
    onError: (error, { plural }) => log.error(error, 'Failed to watch resource', { resource: plural }),
  })
  const meters = createControllerMeters(options.registry)
  for (const [name, row] of Object.entries(CONTROLLER_FAMILIES)) {
    const { type, labels } = parseFamily(row)
    if (labels.length === 0 && type !== 'gauge') meters.family(name as keyof typeof CONTROLLER_FAMILIES)
  }
  const queueMetrics = registerWorkQueueMetrics(meters.registry)
  const running = await prepared(
    allowed(options).map((controller) => runningOf(options, controller, { informers, signal, meters, queueMetrics })),
  )
  for (const { controller, queue, causes, context, kinds } of running) {
    for (const watch of controller.watches) listen(informers, watch, { queue, causes }, context)
    for (const kind of kinds) informers.of(kind)
  }
  const isOver = aborted(signal)
  await Promise.all(
    running.map(async (one) => {
      await Promise.race([informers.synced(one.kinds), isOver])
      if (!signal.aborted) await work(one)
    }),
  )
  await informers.ended()
}

function runningOf<S>(
  options: ManagerOptions<S>,
  controller: Controller<S>,
  {
    queueMetrics,
    ...shared
  }: Omit<SharedTools, 'cache' | 'queue' | 'causes'> & {
    readonly queueMetrics: (name: string) => WorkQueueMetrics
  },
): RunningController<S> {
  const queue = new WorkQueue<string>({
    clock: options.clock,
    ...(controller.retry !== undefined && { rateLimiter: createItemBackoff<string>(controller.retry) }),
    metrics: queueMetrics(controller.name),
  })
  const kinds = [...controller.watches.map(({ kind }) => kind), ...(controller.reads ?? [])]
  const causes = new KeyCauses()
  const cache = new Cache(shared.informers, kinds)
  const context = contextOf(options, controller, { ...shared, cache, queue, causes })
  return { controller, queue, causes, context, kinds, workersOf: options.workersOf }
}

/** The controllers whose `prepare` returned true. */
async function prepared<S>(all: readonly RunningController<S>[]): Promise<RunningController<S>[]> {
  const found: RunningController<S>[] = []
  for (const one of all) if ((await one.controller.prepare?.(one.context)) ?? true) found.push(one)
  return found
}

/** The controllers with enabled gates, each with its watches with enabled gates. */
function allowed<S>({ controllers, isEnabled, log }: ManagerOptions<S>): Controller<S>[] {
  const missing = (gates: readonly string[] = []): string[] => gates.filter((gate) => !isEnabled(gate))
  return controllers.flatMap((controller) => {
    const requiredFeatureGates = missing(controller.gates)
    if (requiredFeatureGates.length === 0)
      return { ...controller, watches: controller.watches.filter(({ gates }) => missing(gates).length === 0) }
    log.info('Controller is disabled by a feature gate', { controller: controller.name, requiredFeatureGates })
    return []
  })
}

function clientOf(
  { clock, userAgent, connect }: Pick<ManagerOptions, 'clock' | 'userAgent' | 'connect'>,
  name: string,
  { pace, ...more }: Pick<ApiClientOptions, 'onChanged'> & Pick<Controller, 'pace'> = {},
): ApiClient {
  const { limits, ...connection } = connect(name)
  const { qps = 1, burst = 1 } = pace ?? {}
  const own = limits === undefined ? {} : { limits: { qps: limits.qps * qps, burst: limits.burst * burst } }
  return new ApiClient({ clock, userAgent: `${userAgent}/${name}`, ...connection, ...own, ...more })
}

interface SharedTools {
  readonly cache: Cache
  readonly informers: Informers
  readonly queue: WorkQueue<string>
  readonly causes: KeyCauses
  readonly signal: AbortSignal
  readonly meters: ControllerMeters
}

function contextOf<S>(
  options: ManagerOptions<S>,
  controller: Controller<S>,
  shared: SharedTools,
): ControllerContext<S> {
  const {
    clock,
    random,
    log,
    isEnabled,
    settings,
    readFile: read = readText,
    folders = FOLDERS,
    serverBundle = '',
  } = options
  const { cache, informers, queue, causes, signal, meters } = shared
  const account = controller.account ?? controller.name
  // Makes the cache current before the next reconcile.
  const onChanged = (kind: Kind, object: KubeObject): void => informers.learn(kind, object)
  const client = clientOf(options, account, {
    onChanged,
    ...(controller.pace !== undefined && { pace: controller.pace }),
  })
  const source = { component: controller.component ?? controller.name }
  // A dedicated client, so that events do not use up the controller's rate limit.
  const recorder = new EventRecorder({ client: clientOf(options, account), source, signal })
  return {
    cache,
    // A watch outlives the reconcile that starts it.
    metadataOf: (kind, listener) => withCauses([], () => informers.metadataOf(kind, asCauses(kind, listener))),
    settings,
    isEnabled,
    readFile: read,
    folders,
    serverBundle,
    client,
    expectations: new Expectations(clock),
    meters,
    clock,
    random,
    log,
    signal,
    event: (about, note) => recorder.record(about, note),
    enqueue(key, delayMs = 0) {
      causes.add(key, activeCauses())
      if (delayMs > 0) queue.addAfter(key, delayMs)
      else queue.add(key)
    },
  }
}

const FOLDERS: Folders = {
  async make(path) {
    await mkdir(path, { recursive: true, mode: 0o750 })
  },
  remove: (path) => rm(path, { recursive: true, force: true }),
}

function readText(path: string): Promise<string> {
  return readFile(path, 'utf8')
}

/** Each event is the cause of what the listener does. */
function asCauses(kind: Kind, listener: Listener<KubeObject>): Listener<KubeObject> {
  const because = (object: KubeObject, work: () => void): void => withCauses([causeOf(kind, object)], work)
  return {
    added: (object) => because(object, () => listener.added?.(object)),
    updated: (object, old) => because(object, () => listener.updated?.(object, old)),
    deleted: (object) => because(object, () => listener.deleted?.(object)),
  }
}

function listen<S>(
  informers: Informers,
  watch: Watch<KubeObject, S>,
  { queue, causes }: Pick<RunningController<S>, 'queue' | 'causes'>,
  { cache, expectations, settings }: ControllerContext<S>,
): void {
  const delayMs = typeof watch.delayMs === 'function' ? watch.delayMs(settings) : (watch.delayMs ?? 0)
  const addAll = (keys: Iterable<string>, object: KubeObject): void => {
    const cause = [causeOf(watch.kind, object)]
    for (const key of keys) {
      causes.add(key, cause)
      if (delayMs > 0) queue.addAfter(key, delayMs)
      else queue.add(key)
    }
  }
  const wake = (object: KubeObject): readonly string[] => {
    const keys = watch.keysOf(object, cache)
    addAll(keys, object)
    return keys
  }
  const isExpected = watch.isExpected === true
  informers.of(watch.kind).listen({
    added(object) {
      if (watch.skipsAdded === true) return
      for (const key of wake(object)) if (isExpected) expectations.sawCreation(key)
    },
    updated(object, old) {
      if (watch.concerns?.(object, old) === false) return
      // The old version may belong to other keys.
      const former = watch.keysOf(old, cache)
      const isGoing = object.metadata.deletionTimestamp !== undefined && old.metadata.deletionTimestamp === undefined
      // A terminating object counts as deleted for Expectations.
      if (isExpected && isGoing) for (const key of former) expectations.sawDeletion(key, object)
      // Each key once: adding a key during its reconcile enqueues it again.
      addAll(new Set([...former, ...watch.keysOf(object, cache)]), object)
    },
    deleted(object) {
      for (const key of wake(object)) if (isExpected) expectations.sawDeletion(key, object)
    },
  })
}

interface RunningController<S> {
  readonly workersOf: ManagerOptions<S>['workersOf']
  readonly controller: Controller<S>
  readonly queue: WorkQueue<string>
  /** The objects whose changes added the keys. */
  readonly causes: KeyCauses
  readonly context: ControllerContext<S>
  /** All watched and read kinds. */
  readonly kinds: readonly Kind[]
}

async function work<S>({ controller, queue, causes, context, workersOf }: RunningController<S>): Promise<void> {
  const { name, maxRetries } = controller
  const { log, signal, settings } = context
  const workers = workersOf?.(name, settings) ?? controller.workers ?? DEFAULT_WORKERS
  log.v(1)?.info('Starting controller', { controller: name })
  const own = controller.run?.(context).catch((error: unknown) => {
    if (!signal.aborted) log.error(error, 'Controller stopped after an error', { controller: name })
  })
  await queue.run({
    workers,
    ...(maxRetries !== undefined && { maxRetries }),
    signal,
    async handle(key) {
      const taken = causes.take(key, () => ownCause(controller, context, key))
      try {
        const requeue = await withCauses(taken, () => controller.reconcile(key, context).catch(unlessNamespaceGoes))
        if (requeue) causes.wait(key)
        return requeue
      } catch (error) {
        const isRetried = queue.numRequeues(key) < (maxRetries ?? Infinity)
        if (isRetried) causes.add(key, taken)
        throw error
      }
    },
    onError(error, key) {
      // A conflict is normal and retried at once.
      if (!signal.aborted && !isConflict(error) && !(error instanceof NotYet))
        log.error(error, 'Failed to reconcile object', { controller: name, key })
    },
  })
  await own
}

/** The present version of the object that the key names. */
function ownCause<S>({ watches }: Controller<S>, { cache }: ControllerContext<S>, key: string): Cause | undefined {
  const kind = watches.find(({ isItself }) => isItself === true)?.kind
  const object = kind === undefined ? undefined : cache.get(kind, key)
  return kind === undefined || object === undefined ? undefined : causeOf(kind, object)
}

/** In a terminating namespace, creation fails in every attempt. */
function unlessNamespaceGoes(error: unknown): void {
  if (!isNamespaceTerminating(error)) throw error
}
