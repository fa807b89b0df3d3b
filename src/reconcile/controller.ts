/**
 * The definition of a controller: watches, RBAC rules and `reconcile`. `S` is the type of the settings of the program
 * that runs it. Controllers are level-triggered: a key names an object, never an event. The manager (`manager.ts`) owns
 * queues, retries, caches, credentials, events and metrics.
 */
import type { Kind } from '#apis/kinds.ts'
import type { PolicyRule } from '#apis/rbac/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { EventNote } from '#client/events/event-recorder.ts'
import type { Informers } from '#client/informers.ts'
import type { Growth } from '#lib/backoff.ts'
import { withCauses } from '#lib/causes.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { parseApiVersion } from '#meta/kind.ts'
import { controllerOf, keyOf, type KubeObject, objectKey } from '#meta/object.ts'
import type { ControllerMeters } from '#model/metrics/controller-families.ts'

import type { Cache } from './cache.ts'
import type { Expectations } from './expectations.ts'

export interface Controller<S = unknown> {
  /** `replicaset-controller`: also its identity and event source. */
  readonly name: string
  /** Older names in `--controllers`. */
  readonly aliases?: readonly string[]
  /** The ServiceAccount in kube-system, if it has another name. */
  readonly account?: string
  /** Uses the manager's credentials instead of a ServiceAccount. */
  readonly actsAsManager?: boolean
  /** The event source, if it differs from the name. */
  readonly component?: string
  /** Runs only if `--controllers` names it. */
  readonly isOptional?: boolean
  /** Runs only if these feature gates are on. */
  readonly gates?: readonly string[]
  /** Concurrent reconciles without a flag. */
  readonly workers?: number
  /** Retries of a failing key before it is dropped until its next event. Default: unlimited. */
  readonly maxRetries?: number
  /** The backoff of failed keys, if it differs from the default. */
  readonly retry?: Growth
  /** A multiple of the manager's request rate, as upstream. */
  readonly pace?: { readonly qps: number; readonly burst?: number }
  readonly watches: readonly Watch<KubeObject, S>[]
  /** Further kinds to read from the cache; their events enqueue nothing. */
  readonly reads?: readonly Kind[]
  /** The rules of its ClusterRole `system:controller:<account>`. */
  readonly rules: readonly PolicyRule[]
  /**
   * Runs before any controller starts; returns whether to start this one. If it throws, the settings are invalid and no
   * controller runs.
   */
  prepare?(context: ControllerContext<S>): Promise<boolean>
  reconcile(key: string, context: ControllerContext<S>): Promise<Requeue | void>
  /** Work without a key, such as periodic tasks. Runs until the signal is aborted. */
  run?(context: ControllerContext<S>): Promise<void>
}

export interface ControllerContext<S = unknown> {
  readonly cache: Cache
  /** Metadata of any kind: see `Informers.metadataOf`. */
  readonly metadataOf: Informers['metadataOf']
  /** The settings of the program that runs it. */
  readonly settings: S
  /** Whether a feature gate is on. */
  readonly isEnabled: (gate: string) => boolean
  /** Reads the current content of a file that a flag names. */
  readonly readFile: (path: string) => Promise<string>
  /** Directories of this machine. */
  readonly folders: Folders
  /** The CA bundle for the API server in PEM; empty if the server is in this process or no bundle is configured. */
  readonly serverBundle: string
  /** Uses the controller's own identity. */
  readonly client: ApiClient
  readonly expectations: Expectations
  readonly meters: ControllerMeters
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  readonly event: (about: KubeObject, note: EventNote) => void
  /** Enqueues the key, now or after a delay. */
  readonly enqueue: (key: string, delayMs?: number) => void
}

export interface Folders {
  /** Creates parent directories too. */
  make(path: string): Promise<void>
  /** Recursively; does nothing if it does not exist. */
  remove(path: string): Promise<void>
}

export interface Watch<T extends KubeObject = KubeObject, S = unknown> {
  readonly kind: Kind<T>
  /** The keys that this object enqueues. */
  keysOf(object: T, cache: Cache): readonly string[]
  /** Whether an update matters. Default: always. */
  concerns?(object: T, old: T): boolean
  /** Watched only if these feature gates are on: otherwise the kind may not be served. */
  readonly gates?: readonly string[]
  /** The keys of the controller name objects of this kind. */
  readonly isItself?: boolean
  /** Skips the add event. */
  readonly skipsAdded?: boolean
  /** Its objects are created by this controller and counted by Expectations. */
  readonly isExpected?: boolean
  /** Delays keys, so that related events cause one reconcile. */
  readonly delayMs?: number | ((settings: S) => number)
}

/** A precondition is not met yet. The manager requeues with backoff, without logging. */
export class NotYet extends Error {}

/** Enqueues the object's own key. */
export function itself<T extends KubeObject>(kind: Kind<T>): Watch {
  return { kind, isItself: true, keysOf: (object) => [objectKey(object)] }
}

/** Enqueues the controlling `owner` of an object. */
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

/** Enqueues other keys that depend on the object. */
export function related<T extends KubeObject>(
  kind: Kind<T>,
  keysOf: (object: T, cache: Cache) => readonly string[],
  concerns?: (object: T, old: T) => boolean,
): Watch {
  // The manager passes only objects of the watch's kind.
  const watch: Watch<T> = { kind, keysOf, ...(concerns !== undefined && { concerns }) }
  return watch
}

/** `rule('apps', 'replicasets replicasets/status', 'get list watch update')`. */
export function rule(groups: string, resources: string, verbs: string): PolicyRule {
  return { verbs: verbs.split(' '), apiGroups: groups.split(' '), resources: resources.split(' ') }
}

/** State that lasts for one run of a controller, created on first use. */
export function perRun<T, S = unknown>(
  make: (context: ControllerContext<S>) => T,
): (context: ControllerContext<S>) => T {
  const made = new WeakMap<ControllerContext<S>, T>()
  return (context) => {
    const known = made.get(context)
    if (known !== undefined) return known
    // It outlives the reconcile that uses it first.
    const fresh = withCauses([], () => make(context))
    made.set(context, fresh)
    return fresh
  }
}

/** The rule for writing events: see `ControllerContext.event`. */
export const EVENTS: PolicyRule = rule(' events.k8s.io', 'events', 'create patch update')
