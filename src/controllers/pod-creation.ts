/** Pods out of a template, and the events that tell of them: the same for all controllers that make pods. */
import { type Pod, Pods, type PodTemplateSpec } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { controllerRef, type KubeObject } from '#meta/object.ts'
import { isNotFound, StatusError } from '#meta/status.ts'

import type { ControllerContext } from './controller.ts'

/** Longer names would not leave room for what is added to them. */
const MAX_BASE = 58

/** A pod of the template whose controller is `owner`. */
export function podFrom(template: PodTemplateSpec, owner: KubeObject, ownerKind: Kind): Pick<Pod, 'metadata' | 'spec'> {
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

/** Creates it and says so. What is refused because the namespace goes is nobody's news. */
export async function createPod(
  { client, event, signal }: ControllerContext,
  owner: KubeObject,
  pod: Pick<Pod, 'metadata' | 'spec'>,
): Promise<Pod> {
  try {
    const made = await client.create(Pods, pod, { signal })
    event(owner, { type: 'Normal', reason: 'SuccessfulCreate', message: `Created pod: ${made.metadata.name}` })
    return made
  } catch (error) {
    if (!isNamespaceGoing(error)) {
      event(owner, { type: 'Warning', reason: 'FailedCreate', message: `Error creating: ${messageOf(error)}` })
    }
    throw error
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
