/** Encodes an object in the form that the client accepts: JSON, YAML or protobuf. */
import { schemaFor } from '#apis/schemas.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { latin1 } from '#lib/latin1.ts'
import { stringifyYaml } from '#lib/yaml/yaml.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { contentTypeOf } from '#meta/codec/negotiate.ts'
import { encodeEnvelope, encodeMessage } from '#meta/codec/protobuf.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import type { StructSchema } from '#meta/schema.ts'
import { notAcceptableError } from '#meta/status-errors.ts'

import type { WholeAnswer } from './call.ts'
import type { Form } from './response-form.ts'

type SchemaFor = (gvk: GroupVersionKind) => StructSchema | undefined

/** Encodes any object as a response. */
export interface ValueEncoder {
  value(object: KubeObject, form: Form, status: number): WholeAnswer
}

/** For servers without resources: encodes objects of built-in kinds, such as Status. */
export const BUILT_IN_ENCODER: ValueEncoder = {
  value: (object, form, status) => ({
    status,
    contentType: contentTypeOf(form.negotiated),
    body: encodeValue(object, form, schemaFor),
  }),
}

/** Throws StatusError 406 for a kind without protobuf. A string is latin1. */
export function encodeValue(object: KubeObject, { negotiated, pretty }: Form, schemas: SchemaFor): string | Buffer {
  const { mediaType } = negotiated
  switch (mediaType) {
    case 'application/json':
      // Upstream ends JSON with a newline, unless it is indented.
      return latin1(pretty ? encodeJson(object, { pretty }) : `${encodeJson(object)}\n`)
    case 'application/yaml':
      return latin1(stringifyYaml(object))
    case 'application/vnd.kubernetes.protobuf': {
      const gvk = gvkOf(object)
      return encodeEnvelope(gvk, encodeMessage(protobufSchemaOf(gvk, schemas), object as unknown as JsonObject))
    }
    default:
      return mediaType satisfies never
  }
}

export function protobufSchemaOf(gvk: GroupVersionKind, schemas: SchemaFor): StructSchema {
  const schema = schemas(gvk)
  if (schema?.protobuf === undefined) throw notAcceptableError(['application/json', 'application/yaml'])
  return schema
}

export function gvkOf({ apiVersion = '', kind = '' }: KubeObject): GroupVersionKind {
  const slash = apiVersion.indexOf('/')
  return { group: slash < 0 ? '' : apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1), kind }
}
