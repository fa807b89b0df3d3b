/** Finds the revisions of Deployments, DaemonSets and StatefulSets, with pod templates and change causes. */
import type { ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet } from '#apis/apps/v1.ts'
import type { PodTemplateSpec } from '#apis/core/v1.ts'
import { asSelector } from '#meta/label-selector.ts'
import { selectorText } from '#meta/labels.ts'

import { replicaSetsOf } from '../describe/deployment-sets.ts'
import { podTemplateRow } from '../describe/pods.ts'
import type { RelatedObjects } from '../describe/related.ts'
import { renderUnaligned } from '../describe/rows.ts'
import { KubectlError } from '../errors.ts'
import { TabWriter } from '../print/tabs.ts'

const REVISION = 'deployment.kubernetes.io/revision'
export const CHANGE_CAUSE = 'kubernetes.io/change-cause'

export type RevisionedWorkload = Deployment | DaemonSet | StatefulSet

export interface Revision {
  readonly revision: number
  readonly template: PodTemplateSpec
  readonly cause: string
  /** The replica set or controller revision that stores the revision. */
  readonly kept: ReplicaSet | ControllerRevision
  /** The replica set, or the restored daemon set or stateful set. */
  readonly object: ReplicaSet | DaemonSet | StatefulSet
}

type Lister = Pick<RelatedObjects, 'list'>

/** Sorted by revision. */
export async function revisionsOf(object: RevisionedWorkload, around: Lister): Promise<Revision[]> {
  const found =
    object.kind === 'Deployment'
      ? await setRevisions(object as Deployment, around)
      : await controllerRevisions(object as DaemonSet | StatefulSet, around)
  return found.sort((one, other) => one.revision - other.revision)
}

async function setRevisions(deployment: Deployment, around: Lister): Promise<Revision[]> {
  const { old, current } = await replicaSetsOf(deployment, around)
  const sets = current === undefined ? old : [...old, current]
  return sets.flatMap((kept) => {
    const { annotations = {} } = kept.metadata
    const cause = annotations[CHANGE_CAUSE] ?? ''
    const template = kept.spec.template ?? {}
    const revision = Number(annotations[REVISION] ?? Number.NaN)
    return Number.isNaN(revision) ? [] : [{ revision, template, cause, kept, object: kept }]
  })
}

async function controllerRevisions(set: DaemonSet | StatefulSet, around: Lister): Promise<Revision[]> {
  const labels = selectorText(asSelector(set.spec.selector))
  const { namespace = '', uid } = set.metadata
  const all = await around.list<ControllerRevision>('apps/v1/controllerrevisions', namespace, { labels })
  const own = all.filter(({ metadata }) =>
    metadata.ownerReferences?.some((owner) => owner.controller === true && owner.uid === uid),
  )
  return own.map((kept) => {
    const data = kept.data as { spec?: { template?: PodTemplateSpec } } | undefined
    // A controller revision contains a patch that replaces the template.
    const { $patch: _, ...found } = (data?.spec?.template ?? {}) as PodTemplateSpec & { $patch?: string }
    const template = found
    const cause = kept.metadata.annotations?.[CHANGE_CAUSE] ?? ''
    const object = { ...set, spec: { ...set.spec, template } } as DaemonSet | StatefulSet
    return { revision: kept.revision, template, cause, kept, object }
  })
}

/** Throws KubectlError. */
export function revisionOf(revisions: readonly Revision[], revision: number): Revision {
  const found = revisions.find((one) => one.revision === revision)
  if (found === undefined) throw new KubectlError('unable to find the specified revision')
  return found
}

/** A table of all revisions, or details of one; 0 means all. Throws KubectlError. */
export function historyText(revisions: readonly Revision[], revision: number): string {
  if (revisions.length === 0) return 'No rollout history found.'
  if (revision > 0) return templateText(withCause(revisionOf(revisions, revision)))
  const tabs = new TabWriter({ minWidth: 0, padding: 2 })
  tabs.write('REVISION\tCHANGE-CAUSE\n')
  for (const one of revisions) tabs.write(`${one.revision}\t${one.cause === '' ? '<none>' : one.cause}\n`)
  return tabs.flush()
}

/** The details of a replica set show the cause among the pod annotations. */
function withCause({ template, cause, kept }: Revision): PodTemplateSpec {
  if (cause === '' || kept.kind !== 'ReplicaSet') return template
  const { metadata } = template
  return { ...template, metadata: { ...metadata, annotations: { ...metadata?.annotations, [CHANGE_CAUSE]: cause } } }
}

/** Upstream does not align these columns; the tabs stay. */
export function templateText(template: PodTemplateSpec): string {
  return renderUnaligned([podTemplateRow(template)])
}
