/** Pods out of a template, and the events that tell of them: the same for all controllers that make pods. */
import { type Pod, Pods, type PodTemplateSpec } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { controllerRef, generateName, isControlledBy, type KubeObject, objectKey, semanticEqual } from '#meta/object.ts'
import { isAlreadyExists, isNotFound, StatusError } from '#meta/status.ts'

import { type ControllerContext, perRun } from './controller.ts'

/** Longer names would not leave room for what is added to them. */
const MAX_BASE = 58

/** A pod of the template whose controller is `owner`. */
export function podFrom(template: PodTemplateSpec, owner: KubeObject, ownerKind: Kind): PodDraft {
  const { labels, annotations, finalizers } = template.metadata ?? {}
  return {
    metadata: {
      generateName: `${(owner.metadata.name ?? '').slice(0, MAX_BASE - 1)}-`,
      namespace: owner.metadata.namespace ?? '',
      ...(labels !== undefined && { labels: { ...labels } }),
      ...(annotations !== undefined && { annotations: { ...annotations } }),
      ...(finalizers !== undefined && { finalizers: [...finalizers] }),
      ownerReferences: [controllerRef(owner, ownerKind)],
    },
    spec: template.spec,
  }
}

type PodDraft = Pick<Pod, 'metadata' | 'spec'>

/** By owner: pods that may have been made, though nobody was told. */
const undecidedOf = perRun(() => new Map<string, PodDraft[]>())

/**
 * Creates it and says so. What is refused because the namespace goes is nobody's news. The name is made here as the server
 * would make it, so that a creation without an answer can be asked for again: there are never two pods for one.
 */
export async function createPod(context: ControllerContext, owner: KubeObject, pod: PodDraft): Promise<Pod> {
  const { client, event, signal } = context
  const draft = takeUndecided(context, owner, pod) ?? named(pod, context)
  try {
    const made = await client.create(Pods, draft, { signal }).catch((error: unknown) => {
      if (isAlreadyExists(error)) return takeExisting(context, owner, draft)
      throw error
    })
    event(owner, { type: 'Normal', reason: 'SuccessfulCreate', message: `Created pod: ${made.metadata.name}` })
    return made
  } catch (error) {
    if (!isDecided(error)) noteUndecided(context, owner, draft)
    if (!isNamespaceGoing(error)) {
      event(owner, { type: 'Warning', reason: 'FailedCreate', message: `Error creating: ${messageOf(error)}` })
    }
    throw error
  }
}

function named(pod: PodDraft, { random }: ControllerContext): PodDraft {
  return { ...pod, metadata: { ...pod.metadata, name: generateName(pod.metadata.generateName ?? '', random) } }
}

/** Whether it is certain that nothing was made. */
function isDecided(error: unknown): boolean {
  return error instanceof StatusError && (error.status.code ?? 0) < 500
}

function noteUndecided(context: ControllerContext, { metadata: { uid = '' } }: KubeObject, draft: PodDraft): void {
  const all = undecidedOf(context)
  all.set(uid, [...(all.get(uid) ?? []), draft])
}

/** One like this whose creation had no answer. */
function takeUndecided(context: ControllerContext, owner: KubeObject, pod: PodDraft): PodDraft | undefined {
  const all = undecidedOf(context)
  const { uid = '' } = owner.metadata
  // What has been seen meanwhile is decided.
  const isUnseen = ({ metadata }: PodDraft): boolean => context.cache.get(Pods, objectKey({ metadata })) === undefined
  const open = (all.get(uid) ?? []).filter(isUnseen)
  const isLike = ({ metadata, spec }: PodDraft): boolean =>
    semanticEqual({ metadata, spec }, { ...pod, metadata: { ...pod.metadata, name: metadata.name } })
  const found = open.find(isLike)
  const rest = open.filter((one) => one !== found)
  if (rest.length > 0) all.set(uid, rest)
  else all.delete(uid)
  return found
}

/** How often another name is tried: as often as the server would. */
const MAX_NAMES = 8

/** The pod of that name when it is one of the owner's that nobody has seen yet; another one where it is not. */
async function takeExisting(context: ControllerContext, owner: KubeObject, draft: PodDraft): Promise<Pod> {
  const { client, cache, signal } = context
  const { namespace, name = '' } = draft.metadata
  const found = await client.get(Pods, { namespace, name }, { signal })
  if (isControlledBy(found, owner) && cache.get(Pods, objectKey(found)) === undefined) return found
  for (let tried = 1; ; tried++) {
    try {
      return await client.create(Pods, named(draft, context), { signal })
    } catch (error) {
      if (!isAlreadyExists(error) || tried === MAX_NAMES) throw error
    }
  }
}

export async function deletePod(
  { client, event, signal }: ControllerContext,
  owner: KubeObject,
  { metadata: { namespace, name = '' } }: Pod,
): Promise<void> {
  try {
    await client.delete(Pods, { namespace, name }, { signal })
  } catch (error) {
    if (!isNotFound(error)) {
      event(owner, { type: 'Warning', reason: 'FailedDelete', message: `Error deleting: ${messageOf(error)}` })
    }
    throw error
  }
  event(owner, { type: 'Normal', reason: 'SuccessfulDelete', message: `Deleted pod: ${name}` })
}

export function isNamespaceGoing(error: unknown): boolean {
  const causes = error instanceof StatusError ? error.status.details?.causes : undefined
  return causes?.some(({ reason }) => reason === 'NamespaceTerminating') ?? false
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
