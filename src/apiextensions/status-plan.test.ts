import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { CustomResourceDefinition, JSONSchemaProps } from '#apis/apiextensions/v1.ts'

import { takenNames } from './names.ts'
import { planStatus } from './status-plan.ts'

interface Odd {
  readonly schema?: JSONSchemaProps
  readonly preserves?: boolean
  /** Objects that were not written through the API have no owner. */
  readonly isOwned?: boolean
}

function definition({
  schema = { type: 'object' },
  preserves = false,
  isOwned = false,
}: Odd): CustomResourceDefinition {
  return {
    metadata: { name: 'things.ex.io', ...(isOwned && { managedFields: [{ manager: 'kubectl' }] }) },
    spec: {
      group: 'ex.io',
      scope: 'Namespaced',
      names: { plural: 'things', kind: 'Thing' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
      ...(preserves && { preserveUnknownFields: true }),
    },
    status: { conditions: null, acceptedNames: { plural: '', kind: '' }, storedVersions: ['v1'] },
  }
}

/** Plans until nothing changes; returns the NonStructuralSchema condition. */
function structureOf(start: CustomResourceDefinition, change?: (settled: CustomResourceDefinition) => void): string[] {
  const settle = (from: CustomResourceDefinition): CustomResourceDefinition => {
    const status = planStatus(from, takenNames([]), 0)
    return status === undefined ? from : settle({ ...from, status })
  }
  const settled = settle(start)
  change?.(settled)
  return (settle(settled).status.conditions ?? [])
    .filter(({ type }) => type === 'NonStructuralSchema')
    .map(({ status, reason, message }) => `${status} ${reason}: ${message}`)
}

const untyped: JSONSchemaProps = { type: 'object', properties: { a: {} } }
const field = 'spec.versions[0].schema.openAPIV3Schema.properties[a].type'
const missing = `${field}: Required value: must not be empty for specified object fields`

describe('the status of a CustomResourceDefinition in the store', () => {
  it('has a NonStructuralSchema condition with the reasons why the schema is not structural', () => {
    assert.deepEqual(structureOf(definition({})), [])
    assert.deepEqual(structureOf(definition({ schema: untyped })), [`True Violations: ${missing}`])
    assert.deepEqual(structureOf(definition({ schema: untyped, preserves: true })), [
      `True Violations: [spec.preserveUnknownFields: Invalid value: true: must be false, ${missing}]`,
    ])
    const refers = { type: 'object', $ref: '#/a' }
    assert.deepEqual(structureOf(definition({ schema: refers })), [
      "Unknown StructuralError: failed to check validation schema for version v1: OpenAPIV3Schema '$ref' is not supported",
    ])
  })

  it('loses the NonStructuralSchema condition once the schema is fixed', () => {
    const mended = structureOf(definition({ schema: untyped }), ({ spec }) => {
      Object.assign(spec.versions[0] ?? {}, { schema: { openAPIV3Schema: { type: 'object' } } })
    })
    assert.deepEqual(mended, [])
  })
})

describe('the status of a CustomResourceDefinition with managedFields', () => {
  it('has no NonStructuralSchema condition, because the API validated the schema', () => {
    assert.deepEqual(structureOf(definition({ schema: untyped, isOwned: true })), [])
  })
})
