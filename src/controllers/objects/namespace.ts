/**
 * Namespace controller: deletes all objects in a terminating namespace, then removes its finalizer. Pods go first, so
 * that they keep their dependencies while they terminate. Five conditions report remaining objects and failures.
 */
import { type Namespace, type NamespaceCondition, Namespaces, Pods } from '#apis/core/v1.ts'
import { discover, type DiscoveryResult, type ServedKind } from '#client/discovery.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { groupResourceText } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { isNotFound, StatusError } from '#meta/status.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'
import { itself, rule } from '#reconcile/controller.ts'

import { type Controller, type ControllerContext, defineController } from '../controller.ts'
import { messageOf } from '../pod-creation.ts'

/** Time for other API servers to see that the namespace is terminating. */
const GRACE_MS = 5000
const FINALIZER = 'kubernetes'
/** Concurrent deletions of kinds: the server deletes the objects of one kind in sequence. */
const ABREAST = 10
/** The wait for finalizers of other controllers. */
const FINALIZER_ESTIMATE_SECONDS = 15

export const namespaceController: Controller = defineController({
  name: 'namespace-controller',
  aliases: ['namespace'],
  pace: { qps: 20, burst: 100 },
  watches: [itself(Namespaces)],
  rules: [
    rule('', 'namespaces', 'get list watch delete'),
    rule('', 'namespaces/finalize namespaces/status', 'update'),
    rule('*', '*', 'get list delete deletecollection'),
  ],

  async reconcile(key, context) {
    const { cache, clock } = context
    const namespace = cache.get(Namespaces, key)
    const { deletionTimestamp } = namespace?.metadata ?? {}
    if (namespace === undefined || deletionTimestamp === undefined) return undefined
    if (!(namespace.spec.finalizers ?? []).includes(FINALIZER)) return undefined
    const waitMs = epochMsOf(deletionTimestamp) + GRACE_MS - clock.now()
    if (waitMs > 0) return { requeueAfterMs: waitMs }
    return empty(namespace, context)
  },
})

/** The result of one deletion round. */
interface DeletionRound {
  readonly discovered: DiscoveryResult
  readonly failures: string[]
  /** Remaining objects by `resource.group`. */
  readonly remaining: Map<string, number>
  /** Objects with the finalizer, by finalizer. */
  readonly finalizers: Map<string, number>
  estimateSeconds: number
}

async function empty(namespace: Namespace, context: ControllerContext): Promise<Requeue | undefined> {
  const discovered = await discover(context.client, context.signal)
  const round: DeletionRound = {
    discovered,
    failures: [],
    remaining: new Map(),
    finalizers: new Map(),
    estimateSeconds: 0,
  }
  const { name = '' } = namespace.metadata
  await deleteAll(Pods, name, round, context)
  const isPodsOnly = round.remaining.size > 0
  if (!isPodsOnly) {
    const kinds = deletable(discovered).values()
    const emptyNext = async (): Promise<void> => {
      for (const kind of kinds) await deleteAll(kind, name, round, context)
    }
    await Promise.all(Array.from({ length: ABREAST }, emptyNext))
  }
  const fresh = await writeConditions(namespace, round, isPodsOnly, context)
  if (round.failures.length > 0) throw new Error(round.failures.join('; '))
  if (round.remaining.size > 0) return { requeueAfterMs: (Math.floor(round.estimateSeconds / 2) + 1) * 1000 }
  await finalize(fresh, context)
  return undefined
}

function deletable({ kinds }: DiscoveryResult): ServedKind[] {
  const isDeletable = ({ verbs }: ServedKind): boolean => verbs.includes('delete') && verbs.includes('list')
  return kinds.filter((kind) => kind.isPreferred && kind.namespaced && isDeletable(kind) && kind.plural !== 'pods')
}

async function deleteAll(
  kind: ServedKind | typeof Pods,
  namespace: string,
  round: DeletionRound,
  { client, signal }: ControllerContext,
): Promise<void> {
  // Only names and finalizers are needed.
  const query = { namespace, signal, metadataOnly: true }
  const isWhole = kind.verbs.includes('deletecollection')
  try {
    const before = await client.list<KubeObject>(kind, { ...query, ...(isWhole && { limit: 1 }) })
    if (before.items.length === 0) return
    if (isWhole) {
      await client.deleteCollection(kind, { namespace }, { propagationPolicy: 'Background', signal })
    } else {
      for (const { metadata } of before.items) {
        await ignoringAbsence(
          client.delete(kind, { namespace, name: metadata.name ?? '' }, { propagationPolicy: 'Background', signal }),
        )
      }
    }
    const { items } = await client.list<KubeObject>(kind, query)
    count(kind, items, round)
  } catch (error) {
    // The kind is no longer served.
    if (isNotFound(error) || (error instanceof StatusError && error.status.code === 405)) return
    round.failures.push(messageOf(error))
  }
}

function count(kind: ServedKind | typeof Pods, items: readonly KubeObject[], round: DeletionRound): void {
  if (items.length === 0) return
  const name = groupResourceText({ group: kind.group, resource: kind.plural })
  // Upstream's text keeps the dot without a group.
  round.remaining.set(kind.group === '' ? `${name}.` : name, items.length)
  for (const { metadata } of items) {
    const { finalizers = [], deletionGracePeriodSeconds = 0 } = metadata
    for (const finalizer of finalizers) round.finalizers.set(finalizer, (round.finalizers.get(finalizer) ?? 0) + 1)
    const estimate = finalizers.length > 0 ? FINALIZER_ESTIMATE_SECONDS : deletionGracePeriodSeconds
    round.estimateSeconds = Math.max(round.estimateSeconds, estimate)
  }
}

async function ignoringAbsence(work: Promise<unknown>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}

type ConditionVerdict = Pick<NamespaceCondition, 'type' | 'status' | 'reason' | 'message'>

const verdict = (
  type: string,
  isBad: boolean,
  bad: readonly [reason: string, message: string],
  good: readonly [reason: string, message: string],
): ConditionVerdict => {
  const [reason, message] = isBad ? bad : good
  return { type, status: isBad ? 'True' : 'False', reason, message }
}

/** In upstream's order, with upstream's texts. */
export function verdictsOf({ discovered, failures, remaining, finalizers }: DeletionRound): ConditionVerdict[] {
  const { unknown } = discovered
  return [
    verdict(
      'NamespaceDeletionDiscoveryFailure',
      unknown.length > 0,
      ['DiscoveryFailed', `Discovery failed for some groups, ${unknown.length} failing: ${unknown.join(', ')}`],
      ['ResourcesDiscovered', 'All resources successfully discovered'],
    ),
    verdict(
      'NamespaceDeletionGroupVersionParsingFailure',
      false,
      ['', ''],
      ['ParsedGroupVersions', 'All legacy kube types successfully parsed'],
    ),
    verdict(
      'NamespaceDeletionContentFailure',
      failures.length > 0,
      [
        'ContentDeletionFailed',
        `Failed to delete all resource types, ${failures.length} remaining: ${failures.toSorted().join(', ')}`,
      ],
      ['ContentDeleted', 'All content successfully deleted, may be waiting on finalization'],
    ),
    verdict(
      'NamespaceContentRemaining',
      remaining.size > 0,
      ['SomeResourcesRemain', `Some resources are remaining: ${counted(remaining, 'has')}`],
      ['ContentRemoved', 'All content successfully removed'],
    ),
    verdict(
      'NamespaceFinalizersRemaining',
      finalizers.size > 0,
      ['SomeFinalizersRemain', `Some content in the namespace has finalizers remaining: ${counted(finalizers, 'in')}`],
      ['ContentHasNoFinalizers', 'All content-preserving finalizers finished'],
    ),
  ]
}

function counted(counts: ReadonlyMap<string, number>, word: string): string {
  const parts = Array.from(counts, ([name, number]) => `${name} ${word} ${number} resource instances`)
  return parts.toSorted().join(', ')
}

/** Writes changed conditions; returns the resulting namespace. */
async function writeConditions(
  namespace: Namespace,
  round: DeletionRound,
  isPodsOnly: boolean,
  { client, clock, signal }: ControllerContext,
): Promise<Namespace> {
  // As upstream: while pods remain, no condition about other objects is written.
  const seen = isPodsOnly
    ? { ...round, remaining: new Map<string, number>(), finalizers: new Map<string, number>() }
    : round
  const before = namespace.status.conditions ?? []
  const conditions = verdictsOf(seen).map((wanted): NamespaceCondition => {
    const known = before.find(({ type }) => type === wanted.type)
    const isSame = known?.status === wanted.status && known.reason === wanted.reason && known.message === wanted.message
    return isSame ? known : { ...wanted, lastTransitionTime: timeOf(clock.now()) }
  })
  if (conditions.every((condition) => before.includes(condition))) return namespace
  return client.updateStatus(
    Namespaces,
    { ...namespace, status: { ...namespace.status, phase: 'Terminating', conditions } },
    { signal },
  )
}

async function finalize(namespace: Namespace, { client, signal }: ControllerContext): Promise<void> {
  const finalizers = (namespace.spec.finalizers ?? []).filter((finalizer) => finalizer !== FINALIZER)
  const { metadata, spec } = namespace
  try {
    await client.update(Namespaces, { metadata, spec: { ...spec, finalizers } }, { subresource: 'finalize', signal })
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}
