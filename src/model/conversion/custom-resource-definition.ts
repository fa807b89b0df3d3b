/** Converts CustomResourceDefinitions between v1, which is served, and v1beta1, which is stored. */
import { isDeepStrictEqual } from 'node:util'

import { structFor } from '#apis/schemas.ts'
import { isJsonObject, type JsonObject, type JsonValue, setMember } from '#lib/json/value.ts'
import { normalizeUntyped } from '#meta/codec/untyped.ts'
import { deepCopy } from '#meta/object.ts'
import type { Schema } from '#meta/schema.ts'

import { changeAt, rename, type Rule } from './rule.ts'

/** Properties that v1beta1 may have for all versions, and their names in v1. */
const lifted: readonly (readonly [whole: string, each: string])[] = [
  ['subresources', 'subresources'],
  ['validation', 'schema'],
  ['additionalPrinterColumns', 'additionalPrinterColumns'],
  ['selectableFields', 'selectableFields'],
]

const versionColumns = ['spec', 'versions', '[]', 'additionalPrinterColumns', '[]']

export const customResourceDefinitionRule: Rule = {
  spoke: { group: 'apiextensions.k8s.io', version: 'v1', kind: 'CustomResourceDefinition' },
  hub: { group: 'apiextensions.k8s.io', version: 'v1beta1', kind: 'CustomResourceDefinition' },
  differences: [
    'spec.additionalPrinterColumns',
    'spec.conversion.conversionReviewVersions',
    'spec.conversion.webhook',
    'spec.conversion.webhookClientConfig',
    'spec.preserveUnknownFields',
    'spec.selectableFields',
    'spec.subresources',
    'spec.validation',
    'spec.version',
    'spec.versions[].additionalPrinterColumns[].JSONPath',
    'spec.versions[].additionalPrinterColumns[].jsonPath',
  ],
  toHub(definition) {
    changeAt(definition, ['spec', 'versions', '[]', 'schema'], withPlainJson)
    changeAt(definition, versionColumns, (column) => rename(column, new Map([['jsonPath', 'JSONPath']])))
    changeAt(definition, ['spec', 'conversion'], inlineWebhook)
    changeAt(definition, ['spec'], liftSpec)
    return definition
  },
  fromHub(definition) {
    changeAt(definition, ['spec'], lowerSpec)
    changeAt(definition, versionColumns, (column) => rename(column, new Map([['JSONPath', 'jsonPath']])))
    changeAt(definition, ['spec', 'conversion'], nestWebhook)
    return definition
  },
}

function versionsOf(spec: JsonObject): JsonObject[] {
  return Array.isArray(spec['versions']) ? (spec['versions'] as JsonObject[]) : []
}

function liftSpec(spec: JsonObject): JsonObject {
  // A pointer in v1beta1 that is never nil when converted from v1.
  spec['preserveUnknownFields'] ??= false
  const versions = versionsOf(spec)
  const [first] = versions
  if (first === undefined) return spec
  spec['version'] = first['name'] ?? ''
  for (const [whole, each] of lifted) {
    const value = first[each]
    if (!versions.every((version) => isDeepStrictEqual(version[each], value))) continue
    if (value !== undefined) spec[whole] = value
    for (const version of versions) delete version[each]
  }
  return spec
}

function lowerSpec(spec: JsonObject): JsonObject {
  const { version, ...rest } = spec
  const unnamed = versionsOf(rest).length === 0 && typeof version === 'string' && version !== ''
  if (unnamed) rest['versions'] = [{ name: version, served: true, storage: true }]
  for (const [whole, each] of lifted) {
    const value = rest[whole]
    delete rest[whole]
    if (value === undefined) continue
    for (const target of versionsOf(rest)) target[each] = deepCopy(value)
  }
  return rest
}

function inlineWebhook({ webhook, ...conversion }: JsonObject): JsonObject {
  if (!isJsonObject(webhook)) return conversion
  const { clientConfig, conversionReviewVersions } = webhook
  return {
    ...conversion,
    ...(clientConfig !== undefined && { webhookClientConfig: clientConfig }),
    ...(conversionReviewVersions !== undefined && { conversionReviewVersions }),
  }
}

function nestWebhook({ webhookClientConfig, conversionReviewVersions, ...conversion }: JsonObject): JsonObject {
  if (webhookClientConfig === undefined && conversionReviewVersions === undefined) return conversion
  const webhook: JsonObject = {
    ...(webhookClientConfig !== undefined && { clientConfig: webhookClientConfig }),
    conversionReviewVersions: conversionReviewVersions ?? null,
  }
  return { ...conversion, webhook }
}

/** Defaults, examples and enums pass through Go's `interface {}`, which normalizes them. */
function withPlainJson(validation: JsonObject): JsonObject {
  const schema = structFor('apiextensions.v1', 'CustomResourceValidation')
  return plainJson(schema, validation) as JsonObject
}

function plainJson(schema: Schema, value: JsonValue): JsonValue {
  if (schema.type === 'any') return schema.alternatives ? plainAlternative(schema.alternatives, value) : plain(value)
  if (schema.type === 'list' && Array.isArray(value)) return value.map((item) => plainJson(schema.items, item))
  if (!isJsonObject(value)) return value
  for (const [key, member] of Object.entries(value)) {
    const inner = schema.type === 'struct' ? schema.fields.get(key)?.schema : schema.type === 'map' && schema.values
    if (inner) setMember(value, key, plainJson(inner, member))
  }
  return value
}

/** A schema or another value: selects the alternative by the type of the value. */
function plainAlternative({ fields }: { readonly fields: ReadonlyMap<string, { schema: Schema }> }, value: JsonValue) {
  const type = Array.isArray(value) ? 'list' : 'struct'
  const found = [...fields.values()].find(({ schema }) => schema.type === type)
  return found === undefined ? value : plainJson(found.schema, value)
}

function plain(value: JsonValue): JsonValue {
  return normalizeUntyped(value) as JsonValue
}
