/**
 * Makes the labelled objects of one kind in a managed cluster equal to a given list: creates, updates and deletes
 * objects.
 */
import type { Kind } from '#apis/kinds.ts'
import type { RoleBinding } from '#apis/rbac/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { type KubeObject, objectKey, semanticEqual } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'

export interface ApplyOptions<T extends KubeObject> {
  readonly client: ApiClient
  readonly kind: Kind<T>
  /** Objects with this label belong to the caller; the wanted ones have it. Others are never changed. */
  readonly label: string
  /** Default: all namespaces. */
  readonly namespace?: string
  readonly signal: AbortSignal
}

export async function applyKind<T extends KubeObject>(options: ApplyOptions<T>, wanted: readonly T[]): Promise<void> {
  const { client, kind, label, namespace, signal } = options
  const selection = { labelSelector: `${label}=true`, ...(namespace !== undefined && { namespace }) }
  const { items } = await client.list(kind, { ...selection, signal })
  const found = new Map(items.map((object) => [objectKey(object), object]))
  for (const object of wanted) {
    const current = found.get(objectKey(object))
    found.delete(objectKey(object))
    if (current === undefined || !isSame(current, object)) await write(options, object, current)
  }
  for (const { metadata } of found.values()) {
    const { namespace: where, name = '' } = metadata
    await ignoreMissing(client.delete(kind, { namespace: where, name }, { signal }))
  }
}

/** A binding cannot change its role: it is made anew. All else is updated, so that no right is missing for a moment. */
async function write<T extends KubeObject>(
  { client, kind, signal }: ApplyOptions<T>,
  object: T,
  current: T | undefined,
): Promise<void> {
  const { namespace, name = '' } = object.metadata
  if (current !== undefined && semanticEqual(roleOf(current), roleOf(object))) {
    // Custom resources refuse updates without it.
    const { resourceVersion = '' } = current.metadata
    await client.update(kind, { ...object, metadata: { ...object.metadata, resourceVersion } }, { signal })
    return
  }
  if (current !== undefined) await ignoreMissing(client.delete(kind, { namespace, name }, { signal }))
  try {
    await client.create(kind, object, { signal })
  } catch (error) {
    // The namespace of a RoleBinding does not exist yet.
    if (namespace === undefined || !isNotFound(error)) throw error
  }
}

function roleOf(object: KubeObject): unknown {
  return (object as Partial<RoleBinding>).roleRef
}

function isSame(current: KubeObject, wanted: KubeObject): boolean {
  const { metadata: _, ...now } = current as KubeObject & Record<string, unknown>
  const { metadata: __, ...then } = wanted as KubeObject & Record<string, unknown>
  return Object.keys(then).every(
    (field) => ['kind', 'apiVersion'].includes(field) || semanticEqual(now[field], then[field]),
  )
}

async function ignoreMissing(work: Promise<void>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}
