/**
 * Writes all objects of a resource back unchanged, page by page, so that the server stores them in the current version.
 */
import type { Kind } from '#apis/kinds.ts'
import type { KubeObject } from '#meta/object.ts'
import { isConflict, StatusError } from '#meta/status.ts'

import type { ControllerContext } from '../../controller.ts'

/** An impossible namespace: its list only returns the current resource version. */
const NOWHERE = '@fake:svm_ns!'
const MANAGER = 'storage-version-migrator-controller'
const PAGE = 500

/** The server rejects the object: a retry would not help. */
export class Refusal extends Error {}

export async function latestResourceVersion(kind: Kind, { client, signal }: ControllerContext): Promise<string> {
  const where = kind.namespaced ? { namespace: NOWHERE } : {}
  const { metadata } = await client.list(kind, { ...where, limit: 1, metadataOnly: true, signal })
  return metadata.resourceVersion ?? ''
}

/** Rewrites all objects that were not written since. Throws Refusal; other errors can be retried. */
export async function rewriteAll(
  kind: Kind,
  resourceVersion: string,
  { client, signal }: ControllerContext,
): Promise<void> {
  let from: string | undefined
  do {
    const options = { limit: PAGE, ...(from !== undefined && { continue: from }), metadataOnly: true, signal }
    const { items, metadata } = await client.list(kind, options)
    for (const object of (items as readonly KubeObject[] | null) ?? []) {
      if (isNewer(object, resourceVersion)) continue
      await rewrite(kind, object, { client, signal })
    }
    from = metadata.continue
  } while (from !== undefined && from !== '')
}

function isNewer({ metadata }: KubeObject, resourceVersion: string): boolean {
  return BigInt(metadata.resourceVersion ?? '0') > BigInt(resourceVersion)
}

/** With uid and resourceVersion preconditions: a concurrent write already migrated the object. */
async function rewrite(
  kind: Kind,
  { metadata }: KubeObject,
  { client, signal }: Pick<ControllerContext, 'client' | 'signal'>,
): Promise<void> {
  const { namespace, name, uid, resourceVersion } = metadata
  const same = {
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && { name }),
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  }
  try {
    await client.apply(kind, { metadata: same }, { fieldManager: MANAGER, signal })
  } catch (error) {
    if (isConflict(error)) return
    if (error instanceof StatusError && !isTransient(error)) throw new Refusal(error.message, { cause: error })
    throw error
  }
}

/** An error of the server's state, not of the object. */
function isTransient({ status: { code = 0 } }: StatusError): boolean {
  return code === 429 || code >= 500
}
