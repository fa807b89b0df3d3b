/** Reads and writes the annotations of a Deployment and its ReplicaSets: revision and desired size. Pure. */
import type { Deployment, ReplicaSet } from '#apis/apps/v1.ts'
import type { PodTemplateSpec } from '#apis/core/v1.ts'
import { type KubeObject, semanticEqual } from '#meta/object.ts'

export const REVISION = 'deployment.kubernetes.io/revision'
const REVISION_HISTORY = 'deployment.kubernetes.io/revision-history'
export const DESIRED_REPLICAS = 'deployment.kubernetes.io/desired-replicas'
export const MAX_REPLICAS = 'deployment.kubernetes.io/max-replicas'
/** The revision to restore, set by old versions of `kubectl rollout undo`. */
export const ROLLBACK_TO = 'deprecated.deployment.rollback.to'
export const TEMPLATE_HASH = 'pod-template-hash'

/** Not copied between a Deployment and its ReplicaSets. */
const OWN: ReadonlySet<string> = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  REVISION,
  REVISION_HISTORY,
  DESIRED_REPLICAS,
  MAX_REPLICAS,
  ROLLBACK_TO,
])

const MAX_HISTORY_CHARACTERS = 2000

type Annotations = Readonly<Record<string, string>>

/** The number in the annotation; undefined if there is none. */
export function numberIn({ metadata }: KubeObject, annotation: string): number | undefined {
  const text = metadata.annotations?.[annotation] ?? ''
  return /^[+-]?\d+$/.test(text) ? Number(text) : undefined
}

/** Like `numberIn`, for 64-bit revisions: users may start at any number. */
export function revisionIn({ metadata }: KubeObject, annotation: string): bigint | undefined {
  const text = metadata.annotations?.[annotation] ?? ''
  return /^[+-]?\d+$/.test(text) ? BigInt(text.replace('+', '')) : undefined
}

export const revisionOf = (set: ReplicaSet): bigint => revisionIn(set, REVISION) ?? 0n

export const byRevision = (a: ReplicaSet, b: ReplicaSet): number => compareBigints(revisionOf(a), revisionOf(b))

const compareBigints = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0)

export function maxRevision(sets: readonly ReplicaSet[]): bigint {
  return sets.map(revisionOf).reduce((most, each) => (each > most ? each : most), 0n)
}

/** The second highest: the previous revision. */
export function lastRevision(sets: readonly ReplicaSet[]): bigint {
  return sets.map(revisionOf).sort(compareBigints).at(-2) ?? 0n
}

/** The annotations of the current ReplicaSet at this revision. */
export function revised(deployment: Deployment, before: Annotations, revision: bigint): Annotations {
  const shared = Object.entries(deployment.metadata.annotations ?? {}).filter(([name]) => !OWN.has(name))
  const next: Record<string, string> = { ...before, ...Object.fromEntries(shared) }
  const old = before[REVISION]
  if (old !== undefined && old !== '' && !/^[+-]?\d+$/.test(old)) return next
  if ((revisionIn({ metadata: { annotations: before } }, REVISION) ?? 0n) >= revision) return next
  next[REVISION] = String(revision)
  // The ReplicaSet was current before.
  if (old !== undefined) next[REVISION_HISTORY] = appended(before[REVISION_HISTORY] ?? '', old)
  return next
}

function appended(history: string, revision: string): string {
  if (history === '') return revision
  const revisions = history.split(',')
  let length = history.length + revision.length + 1
  while (length > MAX_HISTORY_CHARACTERS && revisions.length > 0) length -= (revisions.shift() ?? '').length + 1
  return [...revisions, revision].join(',')
}

/** The Deployment's annotations after a rollback: those of the ReplicaSet, and its own. */
export function restored({ metadata }: Deployment, set: ReplicaSet): Annotations {
  const own = Object.entries(metadata.annotations ?? {}).filter(([name]) => OWN.has(name) && name !== ROLLBACK_TO)
  const copied = Object.entries(set.metadata.annotations ?? {}).filter(([name]) => !OWN.has(name))
  return Object.fromEntries([...copied, ...own])
}

export function withSizes(annotations: Annotations, replicas: number, surge: number): Annotations {
  return { ...annotations, [DESIRED_REPLICAS]: String(replicas), [MAX_REPLICAS]: String(replicas + surge) }
}

/** Ignores the pod-template-hash label. */
export function sameTemplate(one: PodTemplateSpec, other: PodTemplateSpec): boolean {
  return semanticEqual(withoutHash(one), withoutHash(other))
}

export function withoutHash(template: PodTemplateSpec): PodTemplateSpec {
  const { [TEMPLATE_HASH]: _, ...labels } = template.metadata?.labels ?? {}
  return { ...template, metadata: { ...template.metadata, labels } }
}
