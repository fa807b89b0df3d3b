/**
 * The values in past states and in the history. Secrets have their type and their keys, but no values: a value that
 * was deleted or replaced must not come back to users who may read the present Secrets.
 */
import { type Secret, Secrets } from '#apis/core/v1.ts'
import { BUILT_IN } from '#apiserver/registry/shapes.ts'
import { decodeObject } from '#meta/codec/object.ts'
import { isProtobuf } from '#meta/codec/protobuf.ts'
import type { KubeObject } from '#meta/object.ts'
import { type AtRest, isSealed, type Resting } from '#storage/encryption/at-rest.ts'

/** `kubectl apply` stores the whole object in it. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** Opens the values of past states. Those of the history may be plain even if the store seals them. */
export function forPastStates(atRest: AtRest): AtRest {
  return {
    ...atRest,
    resting(resource) {
      const resting = atRest.resting(resource)
      const open: Resting['open'] = (key, value) => (isSealed(value) ? resting.open(key, value) : value)
      const isSecret = resource.group === Secrets.group && resource.resource === Secrets.plural
      return {
        isSealing: true,
        seal: (key, value) => resting.seal(key, value),
        isStale: (value) => resting.isStale(value),
        open: isSecret ? (key, value) => secretWithoutValues(Buffer.from(open(key, value))) : open,
      }
    },
  }
}

export function secretWithoutValues(bytes: Buffer): Buffer {
  const { data = {}, metadata, ...rest } = decode(bytes) as Secret
  const { [LAST_APPLIED]: _, ...annotations } = metadata.annotations ?? {}
  const shown = {
    ...rest,
    metadata: { ...metadata, ...(metadata.annotations !== undefined && { annotations }) },
    data: Object.fromEntries(Object.keys(data).map((name) => [name, ''])),
  }
  return Buffer.from(JSON.stringify(shown))
}

/** The object without its spec, data and status. */
export function metadataOnly(bytes: Buffer): Buffer {
  const { apiVersion, kind, metadata } = isProtobuf(bytes)
    ? decode(bytes)
    : (JSON.parse(bytes.toString()) as KubeObject)
  return Buffer.from(JSON.stringify({ apiVersion, kind, metadata }))
}

function decode(bytes: Buffer): KubeObject {
  const mediaType = isProtobuf(bytes) ? 'application/vnd.kubernetes.protobuf' : 'application/json'
  return decodeObject(bytes, mediaType, { schemaFor: BUILT_IN.schemaFor, defaultKind: Secrets })
    .object as unknown as KubeObject
}
