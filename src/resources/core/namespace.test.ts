import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { hasSpecFinalizers, namespace } from './namespace.ts'
import { contextWith, NOW, trialOf } from './trial.suite.ts'

const trial = trialOf(namespace)
const metadata = { name: 'n' }

describe('Namespace', () => {
  it('has phase Active, a label with its name and the finalizer kubernetes on creation', () => {
    const { object, errors } = trial.create({
      metadata,
      spec: { finalizers: ['example.com/x'] },
      status: { phase: 'x' },
    })
    assert.deepEqual(errors, [])
    assert.deepEqual(object.metadata.labels, { 'kubernetes.io/metadata.name': 'n' })
    assert.deepEqual(
      [object.spec, object.status],
      [{ finalizers: ['example.com/x', 'kubernetes'] }, { phase: 'Active' }],
    )
    assert.equal(hasSpecFinalizers(object), true)
  })

  it('rejects finalizers without a domain', () => {
    assert.deepEqual(trial.create({ metadata, spec: { finalizers: ['x', 'A b/c'] } }).errors, [
      'spec.finalizers: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified',
      "spec.finalizers: Invalid value: \"A b/c\": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ])
  })

  it('loses finalizers only through the finalize subresource, and keeps its label', () => {
    const old = { metadata, spec: { finalizers: ['kubernetes'] } }
    const { object } = trial.update({ metadata: { ...metadata, labels: {} }, spec: {} }, old)
    assert.deepEqual(object.spec, { finalizers: ['kubernetes'] })
    assert.deepEqual(object.metadata.labels, { 'kubernetes.io/metadata.name': 'n' })
    const finalized = trial.update({ metadata, spec: { finalizers: ['y'] }, status: { phase: 'no' } }, old, 'finalize')
    assert.deepEqual(finalized.object.status, { phase: 'Active' })
    assert.deepEqual(finalized.errors, [
      'spec.finalizers[0]: Invalid value: "y": name is neither a standard finalizer name nor is it fully qualified',
    ])
    assert.equal(hasSpecFinalizers(trial.update({ metadata, spec: {} }, old, 'finalize').object), false)
  })

  it('has phase Terminating if and only if it has deletionTimestamp', () => {
    const object = trial.load({ metadata, status: { conditions: [] } })
    namespace.deletion?.(object, {}, contextWith())
    assert.equal(object.status.phase, 'Terminating')
    const deleted = { metadata: { ...metadata, deletionTimestamp: NOW } }
    assert.deepEqual(trial.update({ ...deleted, status: { phase: 'Active' } }, deleted, 'status').errors, [
      'status.Phase: Invalid value: "Active": may only be \'Terminating\' if `deletionTimestamp` is not empty',
    ])
    assert.deepEqual(trial.update({ metadata, status: { phase: 'x' } }, { metadata }, 'status').errors, [
      'status.Phase: Invalid value: "x": may only be \'Active\' if `deletionTimestamp` is empty',
    ])
  })

  it('prints its phase', () => {
    assert.deepEqual(trial.cells({ metadata, status: { phase: 'Terminating' } }), ['n', 'Terminating', '<unknown>'])
    assert.equal(namespace.fieldSelectors?.['status.phase']?.(trial.load({ metadata })), 'Active')
  })
})
