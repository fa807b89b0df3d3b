import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { replicationController } from './replicationcontroller.ts'
import { contextWith, NOW, trialOf } from './trial.suite.ts'

const trial = trialOf(replicationController)
const metadata = { name: 'rc', namespace: 'ns' }
const template = { metadata: { labels: { app: 'x' } }, spec: { containers: [{ name: 'c', image: 'i:1' }] } }

describe('ReplicationController', () => {
  it('has one replica and the labels of its template as selector by default', () => {
    const { object, errors } = trial.create({ metadata, spec: { template } })
    assert.deepEqual(errors, [])
    assert.deepEqual(
      [object.spec.replicas, object.spec.selector, object.metadata.labels],
      [1, { app: 'x' }, { app: 'x' }],
    )
    assert.equal(object.spec.template?.spec.restartPolicy, 'Always')
  })

  it('reports an invalid generated name, not its prefix', () => {
    const { nameRule } = replicationController
    assert.deepEqual([nameRule('Bad_', true), nameRule('Bad_x', false).length], [[], 1])
  })

  it('rejects specs with which it could never run', () => {
    assert.deepEqual(trial.create({ metadata, spec: {} }).errors, [
      'spec.selector: Required value',
      'spec.template: Required value',
    ])
    const spec = { replicas: -1, minReadySeconds: -1, selector: { app: 'y' }, template }
    assert.deepEqual(trial.create({ metadata, spec }).errors, [
      'spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0',
      'spec.replicas: Invalid value: -1: must be greater than or equal to 0',
      'spec.template.metadata.labels: Invalid value: {"app":"x"}: `selector` does not match template `labels`',
    ])
  })

  it('keeps annotations about failed conversions', () => {
    const annotations = { 'non-convertible.kubernetes.io/selector': 'x', 'non-convertible.kubernetes.io/y': 'z' }
    const old = { metadata: { ...metadata, annotations }, spec: { template } }
    const next = { metadata, spec: { selector: {}, template: { ...template, metadata: { labels: { app: 'z' } } } } }
    assert.deepEqual(trial.update(next, old).errors, [
      'spec.selector: Invalid value: {"app":"z"}: cannot update non-convertible selector',
      'y: Not found: "z": unknown non-convertible field',
    ])
  })

  it('rejects counts in the status that exceed the replicas', () => {
    const status = { replicas: 1, readyReplicas: 2, availableReplicas: 3, observedGeneration: -1 }
    assert.deepEqual(trial.update({ metadata, status }, { metadata }, 'status').errors, [
      'status.observedGeneration: Invalid value: -1: must be greater than or equal to 0',
      'status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas',
      'status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas',
      'status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas',
    ])
  })

  it('orphans its pods on deletion unless the client sets a propagation policy', () => {
    const deleted = (options: object, extra: object = {}): readonly string[] | undefined => {
      const object = trial.load({ metadata: { ...metadata, ...extra }, spec: { template } })
      replicationController.deletion?.(object, options, contextWith())
      return object.metadata.finalizers
    }
    assert.deepEqual(deleted({}), ['orphan'])
    assert.equal(deleted({ propagationPolicy: 'Background' }), undefined)
    assert.deepEqual(deleted({}, { finalizers: ['foregroundDeletion'] }), ['foregroundDeletion'])
    assert.equal(deleted({}, { deletionTimestamp: NOW }), undefined)
  })

  it('has a scale subresource', () => {
    const object = trial.load({ metadata, spec: { replicas: 2, template }, status: { replicas: 1 } })
    const { scale } = replicationController
    assert.deepEqual([scale?.replicas(object), scale?.statusReplicas(object), scale?.selector(object)], [2, 1, 'app=x'])
    scale?.setReplicas(object, 5)
    assert.equal(object.spec.replicas, 5)
  })

  it('warns of a name that is no valid host name', () => {
    const [warning] = trial.create({ metadata: { ...metadata, name: 'a.b' }, spec: { template } }).warnings
    assert.match(warning ?? '', /^metadata\.name: this is used in Pod names.*: \[must not contain dots\]$/)
  })

  it('prints counts, containers and selector', () => {
    const row = trial.cells({ metadata, spec: { replicas: 3, template }, status: { replicas: 2, readyReplicas: 1 } })
    assert.deepEqual(row, ['rc', 3, 2, 1, '<unknown>', 'c', 'i:1', 'app=x'])
    assert.equal(
      replicationController.fieldSelectors?.['status.replicas']?.(trial.load({ metadata, spec: { template } })),
      '0',
    )
  })
})
