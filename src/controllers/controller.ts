/**
 * Controller: what one watches, what it may do, and how it brings the world a step closer to what an object wants. It is
 * level-driven: a key says what to look at, never what happened to it. Queues, retries, caches, credentials, events and
 * metrics are the manager's (`manager.ts`); what is clever is in pure functions beside `reconcile`.
 */
import type { Kind } from '#apis/kinds.ts'
import type { PolicyRule } from '#apis/rbac/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { EventNote } from '#client/event-recorder.ts'
import type { Informers } from '#client/informers.ts'
import type { Growth } from '#lib/backoff.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { parseApiVersion } from '#meta/kind.ts'
import { controllerOf, keyOf, type KubeObject, objectKey } from '#meta/object.ts'
import type { ControllerMeters } from '#model/metrics/controller-families.ts'

import type { Cache } from './cache.ts'
import type { Expectations } from './expectations.ts'
import type { ControllerSettings } from './settings.ts'

export interface Controller {
  /** `replicaset-controller`: also whom it acts as, and who its events come from. */
  readonly name: string
  /** What older versions call it in `--controllers`. */
  readonly aliases?: readonly string[]
  /** The ServiceAccount in kube-system that it acts as, where that has another name. */
  readonly account?: string
  /** It has no account of its own: what it does only the manager itself may do. */
  readonly actsAsManager?: boolean
  /** Who its events come from, where that differs. */
  readonly component?: string
  /** Only runs when `--controllers` names it. */
  readonly isOptional?: boolean
  /** Only runs when these feature gates are on. */
  readonly gates?: readonly string[]
  /** How many keys at once, where no flag says so. */
  readonly workers?: number
  /** How often a key is tried in vain before it is left until it changes. Default: for ever. */
  readonly maxRetries?: number
  /** How long a key that failed waits, where that differs from what controllers use. */
  readonly retry?: Growth
  /** How many times as fast as others it may send requests, as upstream. */
  readonly pace?: { readonly qps: number; readonly burst?: number }
  readonly watches: readonly Watch[]
  /** Further kinds it reads from the cache, without being woken by them. */
  readonly reads?: readonly Kind[]
  /** What it may do, for its ClusterRole `system:controller:<account>`. */
  readonly rules: readonly PolicyRule[]
  /**
   * Before any controller begins: whether there is anything to do with these settings. When it throws, something is wrong
   * with them, and none of the controllers runs.
   */
  prepare?(context: ControllerContext): Promise<boolean>
  reconcile(key: string, context: ControllerContext): Promise<Requeue | void>
  /** Work that is not about a key: rounds, rest of the state. Runs until the context's signal is aborted. */
  run?(context: ControllerContext): Promise<void>
}

export interface ControllerContext {
  readonly cache: Cache
  /** Any kind there is, for who looks at metadata alone: see `Informers.metadataOf`. */
  readonly metadataOf: Informers['metadataOf']
  /** What the flags of the manager say. */
  readonly settings: ControllerSettings
  /** Whether a feature gate is on. */
  readonly isEnabled: (gate: string) => boolean
  /** Reads a file that a setting names, as it is now. */
  readonly readFile: (path: string) => Promise<string>
  /** Folders of the machine it runs on. */
  readonly folders: Folders
  /** PEM of what the server is verified with by this program; empty when it is in the same process, or nothing says so. */
  readonly serverBundle: string
  /** With the controller's own identity. */
  readonly client: ApiClient
  readonly expectations: Expectations
  readonly meters: ControllerMeters
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  readonly event: (about: KubeObject, note: EventNote) => void
  /** Looks at the key again, now or later. */
  readonly enqueue: (key: string, delayMs?: number) => void
}

export interface Folders {
  /** With all folders above it. */
  make(path: string): Promise<void>
  /** With everything in it; harmless when there is none. */
  remove(path: string): Promise<void>
}

export interface Watch<T extends KubeObject = KubeObject> {
  readonly kind: Kind<T>
  /** The keys to look at because of this object. */
  keysOf(object: T, cache: Cache): readonly string[]
  /** Whether a change matters; default: every one does. */
  concerns?(object: T, old: T): boolean
  /** Only watched when these feature gates are on: the kind may not be served else. */
  readonly gates?: readonly string[]
  /** News of what is there for the first time is none. */
  readonly skipsAdded?: boolean
  /** Its objects are made by this controller, which waits to see them: see Expectations. */
  readonly isExpected?: boolean
  /** Keys are looked at this much later, so that what happens together is looked at once. */
  readonly delayMs?: number | ((settings: ControllerSettings) => number)
}

/** Nothing is wrong, but what must come first has not come: the key is tried again as after a failure, without a word. */
export class NotYet extends Error {}

export function defineController(controller: Controller): Controller {
  return controller
}

/** The objects that the controller is about. */
export function itself<T extends KubeObject>(kind: Kind<T>): Watch {
  return { kind, keysOf: (object) => [objectKey(object)] }
}

/** What objects of `owner` control: a change of it is about its owner. */
export function ownedBy(owner: Kind, kind: Kind): Watch {
  return {
    kind,
    isExpected: true,
    keysOf(object) {
      const reference = controllerOf(object)
      if (reference?.kind !== owner.kind || parseApiVersion(reference.apiVersion).group !== owner.group) return []
      return [keyOf(owner.namespaced ? object.metadata.namespace : '', reference.name)]
    },
  }
}

/** Anything else that matters to some keys. */
export function related<T extends KubeObject>(
  kind: Kind<T>,
  keysOf: (object: T, cache: Cache) => readonly string[],
  concerns?: (object: T, old: T) => boolean,
): Watch {
  // The manager hands a watch only objects of its kind.
  const watch: Watch<T> = { kind, keysOf, ...(concerns !== undefined && { concerns }) }
  return watch
}

/** `rule('apps', 'replicasets replicasets/status', 'get list watch update')`. */
export function rule(groups: string, resources: string, verbs: string): PolicyRule {
  return { verbs: verbs.split(' '), apiGroups: groups.split(' '), resources: resources.split(' ') }
}

/** What a controller remembers from one key to the next, made when it is first asked for: one for each run of it. */
export function perRun<T>(make: (context: ControllerContext) => T): (context: ControllerContext) => T {
  const made = new WeakMap<ControllerContext, T>()
  return (context) => {
    const known = made.get(context)
    if (known !== undefined) return known
    const fresh = make(context)
    made.set(context, fresh)
    return fresh
  }
}

/** What it takes to tell people what was done: see `ControllerContext.event`. */
export const EVENTS: PolicyRule = rule(' events.k8s.io', 'events', 'create patch update')
