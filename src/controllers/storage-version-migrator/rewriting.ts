/** Writes objects again as they are, page by page. */
import type { Kind } from '#apis/kinds.ts'
import type { KubeObject } from '#meta/object.ts'
import { isConflict, StatusError } from '#meta/status.ts'

import type { ControllerContext } from '../controller.ts'

/** No namespace has this name: what is read there is nothing but where the resource stands. */
const NOWHERE = '@fake:svm_ns!'
const MANAGER = 'storage-version-migrator-controller'
const PAGE = 500

/** An object that the server does not take: trying again would not help. */
export class Refusal extends Error {}

export async function latestResourceVersion(kind: Kind, { client, signal }: ControllerContext): Promise<string> {
  const where = kind.namespaced ? { namespace: NOWHERE } : {}
  const { metadata } = await client.list(kind, { ...where, limit: 1, metadataOnly: true, signal })
  return metadata.resourceVersion ?? ''
}

/** All that has not been written since. Throws Refusal; anything else is to be tried again. */
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

/** With uid and resource version, so that nothing is made, or written twice: whoever was faster did the work. */
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
    if (error instanceof StatusError && !isPassing(error)) throw new Refusal(error.message, { cause: error })
    throw error
  }
}

/** Of the server's state, not of the object. */
function isPassing({ status: { code = 0 } }: StatusError): boolean {
  return code === 429 || code >= 500
}
