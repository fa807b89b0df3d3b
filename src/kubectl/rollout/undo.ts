/** Plans a rollback: selects the revision and creates the patch. */
import { isDeepStrictEqual } from 'node:util'

import type { ControllerRevision, Deployment } from '#apis/apps/v1.ts'
import type { PodTemplateSpec } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go/text.ts'

import { KubectlError } from '../errors.ts'
import type { DryRun } from '../flag-sets.ts'
import type { PatchType } from '../session/rest.ts'
import { type Revision, type RevisionedWorkload, templateText } from './history.ts'

interface Patch {
  readonly type: PatchType
  readonly body: unknown
}

export interface UndoPlan {
  /** The message for the user. */
  readonly text: string
  /** Undefined if nothing changes. */
  readonly patch?: Patch
}

export interface UndoOptions {
  /** 0 means the previous revision. */
  readonly toRevision: number
  readonly dryRun: DryRun
}

const ROLLED_BACK = 'rolled back'

/** Throws KubectlError. `revisions` are sorted. */
export function planUndo(
  object: RevisionedWorkload,
  revisions: readonly Revision[],
  { toRevision, dryRun }: UndoOptions,
): UndoPlan {
  const target = targetOf(object, revisions, toRevision)
  const isDeployment = object.kind === 'Deployment'
  if (dryRun === 'client') {
    return { text: `${isDeployment ? '' : 'will roll back to '}${templateText(target.template)}` }
  }
  if (isDeployment && (object as Deployment).spec.paused === true) {
    throw new KubectlError(
      "you cannot rollback a paused deployment; resume it first with 'kubectl rollout resume' and try again",
    )
  }
  if (isDeepStrictEqual(bare(target.template), bare(object.spec.template))) {
    return { text: `skipped rollback (current template already matches revision ${toRevision})` }
  }
  return { text: ROLLED_BACK, patch: isDeployment ? deploymentPatch(object as Deployment, target) : setPatch(target) }
}

function targetOf(
  { kind, metadata }: RevisionedWorkload,
  revisions: readonly Revision[],
  toRevision: number,
): Revision {
  if (toRevision !== 0) {
    const found = revisions.find(({ revision }) => revision === toRevision)
    if (found === undefined) throw new KubectlError(`unable to find specified revision ${toRevision} in history`)
    return found
  }
  const previous = revisions.at(-2)
  if (previous !== undefined) return previous
  throw new KubectlError(
    kind === 'Deployment'
      ? `no rollout history found for deployment ${goQuote(metadata.name ?? '')}`
      : 'no last revision to roll back to',
  )
}

const HASH_LABEL = 'pod-template-hash'
const CHANGE_CAUSE = 'kubernetes.io/change-cause'

/** Without labels and annotations that the controller or the history added. */
function bare(template: PodTemplateSpec | undefined): PodTemplateSpec {
  const { [HASH_LABEL]: _hash, ...labels } = template?.metadata?.labels ?? {}
  const { [CHANGE_CAUSE]: _cause, ...annotations } = template?.metadata?.annotations ?? {}
  const {
    labels: _labels,
    annotations: _annotations,
    creationTimestamp: _created,
    ...metadata
  } = template?.metadata ?? {}
  return {
    ...template,
    metadata: {
      ...metadata,
      ...(Object.keys(labels).length > 0 && { labels }),
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
  } as PodTemplateSpec
}

/** Annotations that belong to the deployment, not to a revision. */
const KEPT_ANNOTATIONS = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  'deployment.kubernetes.io/revision',
  'deployment.kubernetes.io/revision-history',
  'deployment.kubernetes.io/desired-replicas',
  'deployment.kubernetes.io/max-replicas',
  'deprecated.deployment.rollback.to',
])

function deploymentPatch({ metadata }: Deployment, { template, kept }: Revision): Patch {
  const own = Object.entries(metadata.annotations ?? {}).filter(([key]) => KEPT_ANNOTATIONS.has(key))
  const then = Object.entries(kept.metadata.annotations ?? {}).filter(([key]) => !KEPT_ANNOTATIONS.has(key))
  const body = [
    { op: 'replace', path: '/spec/template', value: bare(template) },
    { op: 'replace', path: '/metadata/annotations', value: Object.fromEntries([...own, ...then]) },
  ]
  return { type: 'json', body }
}

function setPatch({ kept }: Revision): Patch {
  return { type: 'strategic', body: (kept as ControllerRevision).data }
}
