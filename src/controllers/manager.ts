/**
 * The manager: runs controllers. One cache for all of them; a queue, credentials and events of its own for each. A
 * controller begins when its cache has seen what there is, so that nothing is done for want of knowing.
 */
import { mkdir, readFile, rm } from 'node:fs/promises'

import type { Kind } from '#apis/kinds.ts'
import { ApiClient, type ApiClientOptions } from '#client/api-client.ts'
import { EventRecorder } from '#client/event-recorder.ts'
import { Informers } from '#client/informers.ts'
import { aborted } from '#lib/abort.ts'
import { createItemBackoff } from '#lib/backoff.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import type { Registry } from '#lib/metrics.ts'
import type { Random } from '#lib/random.ts'
import { registerWorkQueueMetrics } from '#lib/work-queue-metrics.ts'
import { WorkQueue, type WorkQueueMetrics } from '#lib/work-queue.ts'
import type { KubeObject } from '#meta/object.ts'
import { isConflict } from '#meta/status.ts'
import {
  CONTROLLER_FAMILIES,
  type ControllerMeters,
  createControllerMeters,
} from '#model/metrics/controller-families.ts'

import { Cache } from './cache.ts'
import { type Controller, type ControllerContext, type Folders, NotYet, type Watch } from './controller.ts'
import { Expectations } from './expectations.ts'
import { isNamespaceGoing } from './pod-creation.ts'
import { controllerSettings, type ControllerSettings, workersOf } from './settings.ts'

export interface ManagerOptions {
  readonly controllers: readonly Controller[]
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** How the controller of this account reaches the server: with its own credentials, or everybody's. */
  readonly connect: (name: string) => Pick<ApiClientOptions, 'transport' | 'server' | 'bearerToken' | 'limits'>
  readonly userAgent: string
  /** Default: upstream's defaults. */
  readonly settings?: ControllerSettings
  /** Whether a feature gate is on; those of controllers keep away what they gate. */
  readonly isEnabled: (gate: string) => boolean
  readonly readFile?: (path: string) => Promise<string>
  readonly folders?: Folders
  /** PEM of what the server is verified with. */
  readonly serverBundle?: string
  /** Where everything is counted. Default: nowhere that anybody sees. */
  readonly registry?: Registry
}

const DEFAULT_WORKERS = 5

/**
 * Runs until the signal is aborted; resolves when all have ended. Each begins when it knows what there is of the kinds it
 * looks at, whatever holds up the others. Rejects when one of them finds something wrong with its settings.
 */
export async function runControllers(options: ManagerOptions, signal: AbortSignal): Promise<void> {
  const { random, log } = options
  const client = clientOf(options, 'shared-informers')
  const informers = new Informers({
    client,
    random,
    signal,
    onError: (error, { plural }) => log.error(error, 'Failed to watch', { resource: plural }),
  })
  const meters = createControllerMeters(options.registry)
  for (const [name, [type, , labels]] of Object.entries(CONTROLLER_FAMILIES))
    if (labels === '' && type !== 'gauge') meters.family(name as keyof typeof CONTROLLER_FAMILIES)
  const queueMetrics = registerWorkQueueMetrics(meters.registry)
  const running = await prepared(
    allowed(options).map((controller) => runningOf(options, controller, { informers, signal, meters, queueMetrics })),
  )
  for (const { controller, queue, context, kinds } of running) {
    for (const watch of controller.watches) listen(informers, watch, queue, context)
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

function runningOf(
  options: ManagerOptions,
  controller: Controller,
  {
    queueMetrics,
    ...shared
  }: Omit<Shared, 'cache' | 'queue'> & {
    readonly queueMetrics: (name: string) => WorkQueueMetrics
  },
): Running {
  const queue = new WorkQueue<string>({
    clock: options.clock,
    ...(controller.retry !== undefined && { rateLimiter: createItemBackoff<string>(controller.retry) }),
    metrics: queueMetrics(controller.name),
  })
  const kinds = [...controller.watches.map(({ kind }) => kind), ...(controller.reads ?? [])]
  const context = contextOf(options, controller, { ...shared, cache: new Cache(shared.informers, kinds), queue })
  return { controller, queue, context, kinds }
}

/** Those that have something to do. */
async function prepared(all: readonly Running[]): Promise<Running[]> {
  const found: Running[] = []
  for (const one of all) if ((await one.controller.prepare?.(one.context)) ?? true) found.push(one)
  return found
}

/** Those whose gates are on, each with the watches whose gates are on. */
function allowed({ controllers, isEnabled, log }: ManagerOptions): Controller[] {
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
  { clock, userAgent, connect }: ManagerOptions,
  name: string,
  { pace, ...more }: Pick<ApiClientOptions, 'onChanged'> & Pick<Controller, 'pace'> = {},
): ApiClient {
  const { limits, ...connection } = connect(name)
  const { qps = 1, burst = 1 } = pace ?? {}
  const own = limits === undefined ? {} : { limits: { qps: limits.qps * qps, burst: limits.burst * burst } }
  return new ApiClient({ clock, userAgent: `${userAgent}/${name}`, ...connection, ...own, ...more })
}

interface Shared {
  readonly cache: Cache
  readonly informers: Informers
  readonly queue: WorkQueue<string>
  readonly signal: AbortSignal
  readonly meters: ControllerMeters
}

function contextOf(options: ManagerOptions, controller: Controller, shared: Shared): ControllerContext {
  const {
    clock,
    random,
    log,
    isEnabled,
    settings = controllerSettings(),
    readFile: read = readText,
    folders = FOLDERS,
    serverBundle = '',
  } = options
  const { cache, informers, queue, signal, meters } = shared
  const account = controller.account ?? controller.name
  // The next look must not begin with what was there before this one.
  const onChanged = (kind: Kind, object: KubeObject): void => informers.learn(kind, object)
  const client = clientOf(options, account, {
    onChanged,
    ...(controller.pace !== undefined && { pace: controller.pace }),
  })
  const source = { component: controller.component ?? controller.name }
  // Of its own, so that events do not hold up what they are about.
  const recorder = new EventRecorder({ client: clientOf(options, account), source, signal })
  return {
    cache,
    metadataOf: (kind, listener) => informers.metadataOf(kind, listener),
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
    enqueue: (key, delayMs = 0) => (delayMs > 0 ? queue.addAfter(key, delayMs) : queue.add(key)),
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

function listen(
  informers: Informers,
  watch: Watch,
  queue: WorkQueue<string>,
  { cache, expectations, settings }: ControllerContext,
): void {
  const delayMs = typeof watch.delayMs === 'function' ? watch.delayMs(settings) : (watch.delayMs ?? 0)
  const add = (key: string): void => (delayMs > 0 ? queue.addAfter(key, delayMs) : queue.add(key))
  const wake = (object: KubeObject): readonly string[] => {
    const keys = watch.keysOf(object, cache)
    for (const key of keys) add(key)
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
      // It may be another's from now on.
      const former = watch.keysOf(old, cache)
      const isGoing = object.metadata.deletionTimestamp !== undefined && old.metadata.deletionTimestamp === undefined
      // What has begun to go is gone for whoever made it.
      if (isExpected && isGoing) for (const key of former) expectations.sawDeletion(key, object)
      // Each once: a key that is added while it is looked at is looked at again.
      for (const key of new Set([...former, ...watch.keysOf(object, cache)])) add(key)
    },
    deleted(object) {
      for (const key of wake(object)) if (isExpected) expectations.sawDeletion(key, object)
    },
  })
}

interface Running {
  readonly controller: Controller
  readonly queue: WorkQueue<string>
  readonly context: ControllerContext
  /** All that it looks at. */
  readonly kinds: readonly Kind[]
}

async function work({ controller, queue, context }: Running): Promise<void> {
  const { name, maxRetries } = controller
  const { log, signal, settings } = context
  const workers = workersOf(name, settings) ?? controller.workers ?? DEFAULT_WORKERS
  log.v(1)?.info('Starting controller', { controller: name })
  const own = controller.run?.(context).catch((error: unknown) => {
    if (!signal.aborted) log.error(error, 'Controller failed', { controller: name })
  })
  await queue.run({
    workers,
    ...(maxRetries !== undefined && { maxRetries }),
    signal,
    handle: (key) => controller.reconcile(key, context).catch(unlessNamespaceGoes),
    onError(error, key) {
      // Somebody was faster: ordinary, and tried again at once.
      if (!signal.aborted && !isConflict(error) && !(error instanceof NotYet))
        log.error(error, 'Sync failed', { controller: name, key })
    },
  })
  await own
}

/** Where everything goes nothing can be made, however often it is tried. */
function unlessNamespaceGoes(error: unknown): void {
  if (!isNamespaceGoing(error)) throw error
}
