/**
 * Secrets of the past have their type and their keys, but no values: a value that was deleted or replaced must not come
 * back to users who may read the present Secrets.
 */
import { type Secret, Secrets } from '#apis/core/v1.ts'
import { BUILT_IN } from '#apiserver/registry/shapes.ts'
import { decodeObject } from '#meta/codec/object.ts'
import { isProtobuf } from '#meta/codec/protobuf.ts'
import type { AtRest, Resting } from '#storage/encryption/at-rest.ts'

/** `kubectl apply` stores the whole object in it. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

export function withoutSecretValues(atRest: AtRest): AtRest {
  return {
    ...atRest,
    resting(resource) {
      const resting = atRest.resting(resource)
      const isSecret = resource.group === Secrets.group && resource.resource === Secrets.plural
      return isSecret ? withoutValues(resting) : resting
    },
  }
}

function withoutValues(resting: Resting): Resting {
  return {
    isSealing: true,
    seal: (key, value) => resting.seal(key, value),
    isStale: (value) => resting.isStale(value),
    open: (key, value) => emptySecret(Buffer.from(resting.open(key, value))),
  }
}

function emptySecret(bytes: Buffer): Buffer {
  const mediaType = isProtobuf(bytes) ? 'application/vnd.kubernetes.protobuf' : 'application/json'
  const { object } = decodeObject(bytes, mediaType, { schemaFor: BUILT_IN.schemaFor, defaultKind: Secrets })
  const { data = {}, metadata, ...rest } = object as unknown as Secret
  const { [LAST_APPLIED]: _, ...annotations } = metadata.annotations ?? {}
  const shown = {
    ...rest,
    metadata: { ...metadata, ...(metadata.annotations !== undefined && { annotations }) },
    data: Object.fromEntries(Object.keys(data).map((name) => [name, ''])),
  }
  return Buffer.from(JSON.stringify(shown))
}
