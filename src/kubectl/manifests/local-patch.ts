/** Applies patches locally, for dry runs and `--local`. */
import type { ServedKind } from '#client/discovery.ts'
import { applyMergePatch } from '#lib/json/merge-patch.ts'
import { applyJsonPatch } from '#lib/json/patch.ts'
import type { JsonObject, JsonValue } from '#lib/json/value.ts'

import { asError, KubectlError } from '../errors.ts'
import type { PatchType } from '../session/rest.ts'

/** Throws KubectlError. */
export async function patchedLocally(
  kind: Pick<ServedKind, 'group' | 'version' | 'kind'>,
  object: JsonObject,
  { type, document }: { readonly type: PatchType; readonly document: JsonValue },
): Promise<JsonObject> {
  try {
    if (type === 'json') return applyJsonPatch(object, document) as JsonObject
    if (type === 'merge') return applyMergePatch(object, document) as JsonObject
    return await mergedStrategically(kind, object, document as JsonObject)
  } catch (cause) {
    if (cause instanceof KubectlError) throw cause
    throw new KubectlError(asError(cause).message, { cause })
  }
}

/** Schemas are large, so they are loaded on use. */
async function mergedStrategically(
  { group, version, kind }: Pick<ServedKind, 'group' | 'version' | 'kind'>,
  object: JsonObject,
  document: JsonObject,
): Promise<JsonObject> {
  const [{ schemaFor }, { strategicMerge }] = await Promise.all([
    import('#apis/schemas.ts'),
    import('#meta/patch/strategic-merge.ts'),
  ])
  const schema = schemaFor({ group, version, kind })
  if (schema === undefined) {
    const name = `${group}/${version}, Kind=${kind}`
    throw new KubectlError(`strategic merge patch is not supported for ${name} locally, try --type merge`)
  }
  return strategicMerge(schema, object, document) as JsonObject
}
