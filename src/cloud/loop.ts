/** A loop that depends on a cloud: of the shape of a controller, so that whoever runs controllers runs it. */
import type { Kind } from '#apis/kinds.ts'
import type { PolicyRule } from '#apis/rbac/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { EventNote } from '#client/event-recorder.ts'
import type { Growth } from '#lib/backoff.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import { type KubeObject } from '#meta/object.ts'

import type { ClusterView } from './provider.ts'

export interface LoopContext {
  readonly cache: ClusterView
  readonly client: ApiClient
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  readonly event: (about: KubeObject, note: EventNote) => void
}

export interface LoopWatch<T extends KubeObject = KubeObject> {
  readonly kind: Kind<T>
  keysOf(object: T, cache: ClusterView): readonly string[]
  concerns?(object: T, old: T): boolean
}

export interface CloudLoop {
  readonly name: string
  readonly aliases: readonly string[]
  readonly account: string
  readonly component: string
  readonly workers?: number
  readonly retry?: Growth
  readonly watches: readonly LoopWatch[]
  readonly rules: readonly PolicyRule[]
  reconcile(key: string, context: LoopContext): Promise<void>
  run?(context: LoopContext): Promise<void>
}

export function watching<T extends KubeObject>(
  kind: Kind<T>,
  keysOf: (object: T, cache: ClusterView) => readonly string[],
  concerns?: (object: T, old: T) => boolean,
): LoopWatch {
  // Whoever runs a loop hands a watch only objects of its kind.
  const watch: LoopWatch<T> = { kind, keysOf, ...(concerns !== undefined && { concerns }) }
  return watch
}

export function allow(group: string, resources: string, verbs: string): PolicyRule {
  return { apiGroups: [group], resources: resources.split(' '), verbs: verbs.split(' ') }
}

export const EVENT_RULES: readonly PolicyRule[] = ['', 'events.k8s.io'].map((group) =>
  allow(group, 'events', 'create patch update'),
)
