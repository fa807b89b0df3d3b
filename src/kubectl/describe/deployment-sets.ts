/** Finds the replica sets of a deployment, and the newest: the one with the deployment's pod template. */
import { isDeepStrictEqual } from 'node:util'

import type { Deployment, ReplicaSet } from '#apis/apps/v1.ts'
import { asSelector } from '#meta/label-selector.ts'
import { selectorText } from '#meta/labels.ts'
import { epochMsOf } from '#meta/time.ts'

import type { RelatedObjects } from './related.ts'

const HASH_LABEL = 'pod-template-hash'

export interface ReplicaSets {
  readonly old: readonly ReplicaSet[]
  readonly current: ReplicaSet | undefined
}

/** The replica sets that the deployment controls, except the newest, in list order. */
export async function replicaSetsOf(
  deployment: Deployment,
  around: Pick<RelatedObjects, 'list'>,
): Promise<ReplicaSets> {
  const { metadata, spec } = deployment
  const labels = selectorText(asSelector(spec.selector))
  const all = await around.list<ReplicaSet>('apps/v1/replicasets', metadata.namespace ?? '', { labels })
  const own = all.filter((set) =>
    set.metadata.ownerReferences?.some(({ controller, uid }) => controller === true && uid === metadata.uid),
  )
  const created = ({ metadata: { creationTimestamp } }: ReplicaSet): number =>
    creationTimestamp === undefined ? 0 : epochMsOf(creationTimestamp)
  const byAge = [...own].sort(
    (one, other) => created(one) - created(other) || ((one.metadata.name ?? '') < (other.metadata.name ?? '') ? -1 : 1),
  )
  const current = byAge.find((set) => isDeepStrictEqual(templateOf(set), templateOf(deployment)))
  return { old: own.filter((set) => set !== current), current }
}

/** Compares templates without the pod-template-hash label. */
function templateOf({ spec }: Deployment | ReplicaSet): unknown {
  const { template } = spec
  const { [HASH_LABEL]: _, ...labels } = template?.metadata?.labels ?? {}
  return { ...template, metadata: { ...template?.metadata, labels } }
}
