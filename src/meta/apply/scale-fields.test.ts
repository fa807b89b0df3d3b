import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ManagedFieldsEntry } from '../object.ts'
import { scaleEntries, workloadEntries } from './scale-fields.ts'

const time = '2026-01-01T00:00:00Z'
const paths = new Map([
  ['apps/v1', 'spec.replicas'],
  ['apps/v1beta1', null],
])

function entry(manager: string, apiVersion: string, fields: readonly string[], rest: ManagedFieldsEntry = {}) {
  const spec = Object.fromEntries(fields.map((name) => [`f:${name}`, {}]))
  const fieldsV1 = { 'f:spec': spec }
  return { manager, operation: 'Apply', apiVersion, time, fieldsType: 'FieldsV1', fieldsV1, ...rest } as const
}

describe('managedFields of Scale', () => {
  const workload = [
    entry('a', 'apps/v1', ['paused', 'replicas']),
    entry('b', 'apps/v1', ['paused']),
    entry('c', 'apps/v1beta1', ['replicas']),
    entry('d', 'gone/v1', ['replicas']),
  ]

  it('contain the owners of replicas, with the path in a Scale', () => {
    assert.deepEqual(scaleEntries(workload, paths), [entry('a', 'autoscaling/v1', ['replicas'])])
  })

  it('keep those of the workload if the owner of replicas stays the same', () => {
    const scale = scaleEntries(workload, paths)
    const written = workloadEntries({ workload, scale, apiVersion: 'apps/v1', paths })
    assert.deepEqual(written, workload.slice(0, 3))
  })

  it('transfer replicas from other managers to the writer, without a time', () => {
    const { time: _, ...taken } = entry('kubectl', 'apps/v1', ['replicas'], {
      operation: 'Update',
      subresource: 'scale',
    })
    const scale = [{ ...taken, apiVersion: 'autoscaling/v1', time }]
    const written = workloadEntries({ workload, scale, apiVersion: 'apps/v1', paths })
    assert.deepEqual(written, [entry('a', 'apps/v1', ['paused']), workload[1], workload[2], taken])
  })

  it('drop managers without fields, and removed versions', () => {
    const only = [entry('a', 'apps/v1', ['replicas']), entry('d', 'gone/v1', ['x'])]
    assert.deepEqual(workloadEntries({ workload: only, scale: [], apiVersion: 'apps/v1', paths }), [])
  })
})
