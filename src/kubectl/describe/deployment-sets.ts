/** Which replica sets a deployment has, and which of them is the newest: the one whose template is the deployment's. */
import { isDeepStrictEqual } from 'node:util'

import type { Deployment, ReplicaSet } from '#apis/apps/v1.ts'
import { asSelector } from '#meta/label-selector.ts'
import { selectorText } from '#meta/labels.ts'
import { epochMsOf } from '#meta/time.ts'

import type { Surroundings } from './describer.ts'

const HASH_LABEL = 'pod-template-hash'

export interface ReplicaSets {
  readonly old: readonly ReplicaSet[]
  readonly current: ReplicaSet | undefined
}

/** Sets that the deployment controls, all but the newest with those first that are listed first. */
export async function replicaSetsOf(deployment: Deployment, around: Pick<Surroundings, 'list'>): Promise<ReplicaSets> {
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

/** Without the label that tells sets apart. */
function templateOf({ spec }: Deployment | ReplicaSet): unknown {
  const { template } = spec
  const { [HASH_LABEL]: _, ...labels } = template?.metadata?.labels ?? {}
  return { ...template, metadata: { ...template?.metadata, labels } }
}
