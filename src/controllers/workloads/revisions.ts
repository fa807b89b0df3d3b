/**
 * Maintains the ControllerRevisions of a DaemonSet or StatefulSet. The current template has the highest revision
 * number.
 */
import { type ControllerRevision, ControllerRevisions } from '#apis/apps/v1.ts'
import type { PodTemplateSpec } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { parseJson } from '#lib/json/json.ts'
import { writeJson } from '#lib/json/write.ts'
import { matchesLabels, type Selector } from '#meta/labels.ts'
import { controllerRef, isControlledBy, type KubeObject } from '#meta/object.ts'
import { isAlreadyExists, isNotFound } from '#meta/status.ts'

import type { ControllerContext } from '../controller.ts'
import { claim } from './adoption.ts'

export interface RevisionOwner {
  readonly owner: KubeObject & { readonly spec: { readonly template: PodTemplateSpec } }
  readonly kind: Kind
  readonly selector: Selector
}

export interface RevisionOptions {
  readonly hash: string
  readonly labels: Readonly<Record<string, string>>
  /** Called if another object has the name. */
  readonly onCollision: () => Promise<void>
  /** Whether the data of the latest revision is equivalent, despite another encoding. */
  readonly isSame?: (data: unknown) => boolean
}

/**
 * The data of a revision: a patch that replaces the template. Keys are sorted: kubectl and others find a revision by
 * its bytes.
 */
export function revisionData(template: PodTemplateSpec): object {
  const data = { spec: { template: { ...template, $patch: 'replace' } } }
  return parseJson(writeJson(data, { sortedKeys: true })) as object
}

/** Go's JSON encoding: sorted keys, `<` and similar characters escaped. */
export function dataText(data: unknown): string {
  const text = writeJson(data, { sortedKeys: true })
  return text.replaceAll(/[<>&\u2028\u2029]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The owner's revisions, the lowest number first. */
export async function revisionsOf(owned: RevisionOwner, context: ControllerContext): Promise<ControllerRevision[]> {
  const { owner, kind, selector } = owned
  const { cache } = context
  const candidates = [
    ...cache.ownedBy(ControllerRevisions, owner),
    ...cache.orphansIn(ControllerRevisions, owner.metadata.namespace ?? ''),
  ]
  const matches = ({ metadata }: ControllerRevision): boolean => matchesLabels(selector, metadata.labels)
  const mine = await claim(context, { owner, ownerKind: kind, kind: ControllerRevisions, matches }, candidates)
  return mine.sort(byNumber)
}

function byNumber(a: ControllerRevision, b: ControllerRevision): number {
  if (a.revision !== b.revision) return a.revision - b.revision
  const [left = '', right = ''] = [a.metadata.creationTimestamp, b.metadata.creationTimestamp]
  if (left !== right) return left < right ? -1 : 1
  return (a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1
}

/** The revision of the current template, created or renumbered if needed. */
export async function currentRevision(
  { owner, kind }: RevisionOwner,
  revisions: readonly ControllerRevision[],
  wanted: RevisionOptions,
  context: ControllerContext,
): Promise<ControllerRevision> {
  const { client, signal } = context
  const data = revisionData(owner.spec.template)
  const text = dataText(data)
  const latest = revisions.at(-1)
  const equal = revisions.findLast((revision) => dataText(revision.data) === text)
  const known = equal ?? (latest !== undefined && wanted.isSame?.(latest.data) === true ? latest : undefined)
  const others = revisions.filter((revision) => revision !== known)
  const next = Math.max(0, ...others.map(({ revision }) => revision)) + 1
  if (known !== undefined) {
    return known.revision >= next ? known : client.update(ControllerRevisions, { ...known, revision: next }, { signal })
  }
  return create({ ...draftOf(owner, kind, wanted), data, revision: next }, owner, wanted, context)
}

function draftOf(
  owner: RevisionOwner['owner'],
  kind: Kind,
  { hash, labels }: RevisionOptions,
): Pick<KubeObject, 'metadata'> {
  const { namespace = '', name = '', annotations } = owner.metadata
  return {
    metadata: {
      name: `${name}-${hash}`,
      namespace,
      labels: { ...owner.spec.template.metadata?.labels, ...labels },
      ...(annotations !== undefined && { annotations: { ...annotations } }),
      ownerReferences: [controllerRef(owner, kind)],
    },
  }
}

async function create(
  draft: ControllerRevision,
  owner: KubeObject,
  wanted: RevisionOptions,
  { client, signal }: ControllerContext,
): Promise<ControllerRevision> {
  try {
    return await client.create(ControllerRevisions, draft, { signal })
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
    const { namespace, name = '' } = draft.metadata
    const found = await client.get(ControllerRevisions, { namespace, name }, { signal })
    if (isControlledBy(found, owner) && dataText(found.data) === dataText(draft.data)) return found
    await wanted.onCollision()
    throw error
  }
}

/** Deletes the oldest unused revisions above the limit. */
export async function forgetRevisions(
  olds: readonly ControllerRevision[],
  limit: number,
  isLive: (revision: ControllerRevision) => boolean,
  { client, signal }: ControllerContext,
): Promise<void> {
  const dead = olds.filter((revision) => !isLive(revision))
  for (const { metadata } of dead.slice(0, Math.max(0, olds.length - limit))) {
    const where = { namespace: metadata.namespace, name: metadata.name ?? '' }
    await client.delete(ControllerRevisions, where, { signal }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
  }
}
