/** Creates pods from templates, with events; shared by all workload controllers. */
import { type Pod, Pods, type PodTemplateSpec } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { controllerRef, generateName, isControlledBy, type KubeObject, objectKey, semanticEqual } from '#meta/object.ts'
import { isNamespaceTerminating, isAlreadyExists, isNotFound, StatusError } from '#meta/status.ts'

import { perRun } from './controller.ts'
import { type ControllerContext } from './controller.ts'

/** The longest base name that leaves room for a suffix. */
const MAX_BASE = 58

/** A pod of the template with `owner` as controller. */
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

/** By owner: pods whose creation had no definite answer. */
const undecidedOf = perRun(() => new Map<string, PodDraft[]>())

/**
 * Creates the pod and records an event, except in a terminating namespace. Generates the name locally, so that a
 * creation without an answer can be retried under the same name and never creates two pods.
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
    if (!isNamespaceTerminating(error)) {
      event(owner, { type: 'Warning', reason: 'FailedCreate', message: `Error creating: ${messageOf(error)}` })
    }
    throw error
  }
}

function named(pod: PodDraft, { random }: ControllerContext): PodDraft {
  return { ...pod, metadata: { ...pod.metadata, name: generateName(pod.metadata.generateName ?? '', random) } }
}

/** Whether the server certainly created nothing. */
function isDecided(error: unknown): boolean {
  return error instanceof StatusError && (error.status.code ?? 0) < 500
}

function noteUndecided(context: ControllerContext, { metadata: { uid = '' } }: KubeObject, draft: PodDraft): void {
  const all = undecidedOf(context)
  all.set(uid, [...(all.get(uid) ?? []), draft])
}

/** Takes a draft of the same kind whose creation had no answer. */
function takeUndecided(context: ControllerContext, owner: KubeObject, pod: PodDraft): PodDraft | undefined {
  const all = undecidedOf(context)
  const { uid = '' } = owner.metadata
  // Drafts that the cache shows were created.
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

/** Attempts with other names, as the server. */
const MAX_NAMES = 8

/**
 * Returns the existing pod if the owner controls it and the cache does not show it yet; otherwise creates one under
 * another name.
 */
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

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
