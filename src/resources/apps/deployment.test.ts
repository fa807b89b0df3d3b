import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { deployment } from './deployment.ts'

const { create, update, read, cells } = tryRules(deployment)

const body = {
  metadata: { name: 'web', namespace: 'ns', generation: 2 },
  spec: {
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'i:1' }] } },
  },
}

test('a Deployment has one replica and a rolling update of a quarter by default', () => {
  const { spec } = read(body)
  assert.equal(spec.replicas, 1)
  assert.equal(spec.revisionHistoryLimit, 10)
  assert.equal(spec.progressDeadlineSeconds, 600)
  assert.deepEqual(spec.strategy, {
    type: 'RollingUpdate',
    rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' },
  })
  assert.equal(spec.template.spec.restartPolicy, 'Always')
  assert.deepEqual(read(changed(body, 'spec.strategy', { type: 'Recreate' })).spec.strategy, { type: 'Recreate' })
})

test('a Deployment requires a matching selector and a strategy that can proceed', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual([errors, warnings], [[], []])
  const roll = (maxUnavailable: number | string, maxSurge: number | string): object => ({
    rollingUpdate: { maxUnavailable, maxSurge },
  })
  const unavailable = 'spec.strategy.rollingUpdate.maxUnavailable'
  const mismatch = '`selector` does not match template `labels`'
  const table: readonly (readonly [string, unknown, readonly string[]])[] = [
    ['spec.replicas', -1, ['spec.replicas: Invalid value: -1: must be greater than or equal to 0']],
    [
      'spec.selector',
      undefined,
      ['spec.selector: Required value', `spec.template.metadata.labels: Invalid value: {"app":"web"}: ${mismatch}`],
    ],
    ['spec.selector', {}, ['spec.selector: Invalid value: {}: empty selector is invalid for deployment']],
    [
      'spec.selector.matchLabels.app',
      'api',
      [`spec.template.metadata.labels: Invalid value: {"app":"web"}: ${mismatch}`],
    ],
    [
      'spec.selector',
      { matchExpressions: [{ key: 'app', operator: 'Like' }] },
      [
        'spec.selector.matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator',
        'spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"Like"}]}: invalid label selector',
      ],
    ],
    [
      'spec.strategy',
      { type: 'Sideways' },
      ['spec.strategy: Unsupported value: {"type":"Sideways"}: supported values: "Recreate", "RollingUpdate"'],
    ],
    [
      'spec.strategy',
      { type: 'Recreate', ...roll(1, 1) },
      ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
    ],
    ['spec.strategy', roll('0%', 0), [`${unavailable}: Invalid value: "0%": may not be 0 when \`maxSurge\` is 0`]],
    ['spec.strategy', roll('110%', 1), [`${unavailable}: Invalid value: "110%": must not be greater than 100%`]],
    ['spec.strategy', roll(-1, 1), [`${unavailable}: Invalid value: -1: must be greater than or equal to 0`]],
    [
      'spec.minReadySeconds',
      600,
      ['spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds'],
    ],
    [
      'spec.template.spec.restartPolicy',
      'Never',
      ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'],
    ],
    [
      'spec.template.spec.activeDeadlineSeconds',
      5,
      ['spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, `${path} ${JSON.stringify(value)}`)
  }
})

test('a Deployment warns of a name that is no valid host name', async () => {
  const { warnings } = await create(changed(body, 'metadata.name', 'web.v1'))
  assert.deepEqual(warnings, [
    'metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]',
  ])
})

test('a Deployment rejects a changed selector; changes of spec and annotations increase the generation', async () => {
  const other = { matchLabels: { app: 'web' }, matchExpressions: [{ key: 'app', operator: 'Exists' }] }
  assert.deepEqual((await update(changed(body, 'spec.selector', other), body)).errors, [
    'spec.selector: Invalid value: {"matchLabels":{"app":"web"},"matchExpressions":[{"key":"app","operator":"Exists"}]}: field is immutable',
  ])
  const generation = async (path: string, value: unknown): Promise<number | undefined> =>
    (await update(changed(body, path, value), body)).object.metadata.generation
  assert.equal(await generation('spec.replicas', 3), 3)
  assert.equal(await generation('metadata.annotations', { a: 'b' }), 3)
  assert.equal(await generation('metadata.labels', { a: 'b' }), 2)
})

test('a Deployment validates the counts in an update of its status, and ignores changes of spec and labels in it', async () => {
  const status = { replicas: 2, updatedReplicas: 3, readyReplicas: 1, availableReplicas: 2, collisionCount: 1 }
  const old = { ...body, status: { collisionCount: 2 } }
  const next = { ...changed(changed(body, 'metadata.labels', { a: 'b' }), 'spec.replicas', 9), status }
  const { errors, object } = await update(next, old, 'status')
  assert.deepEqual(errors, [
    'status.updatedReplicas: Invalid value: 3: cannot be greater than status.replicas',
    'status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas',
    'status.collisionCount: Invalid value: 1: cannot be decremented',
  ])
  assert.equal(object.metadata.labels, undefined)
  assert.equal(object.spec.replicas, 1)
})

test('a Deployment drops status.terminatingReplicas while its feature gate is off', async () => {
  const without = tryRules(deployment, { off: ['DeploymentReplicaSetTerminatingReplicas'] })
  const next = { ...body, status: { terminatingReplicas: 1 } }
  assert.equal((await update(next, body, 'status')).object.status.terminatingReplicas, 1)
  assert.equal((await without.update(next, body, 'status')).object.status.terminatingReplicas, undefined)
})

test('a Deployment requires an integer in the deprecated rollback annotation', async () => {
  const rollback = (to: string): object =>
    changed(body, 'metadata.annotations', { 'deprecated.deployment.rollback.to': to })
  assert.deepEqual(read(rollback('')).metadata.annotations, undefined)
  assert.deepEqual((await create(rollback('-4'))).errors, [
    'spec.rollback.version: Invalid value: -4: must be greater than or equal to 0',
  ])
  assert.throws(() => read(rollback('four')), /failed to parse annotation.*=four as int64: strconv.ParseInt/)
})

test('a Deployment has a scale subresource', () => {
  const object = read({ ...body, status: { replicas: 4 } })
  const scale = deployment.scale ?? assert.fail()
  scale.setReplicas(object, 7)
  assert.deepEqual([scale.replicas(object), scale.statusReplicas(object), scale.selector(object)], [7, 4, 'app=web'])
})

test('a Deployment prints its progress', () => {
  const status = { readyReplicas: 1, updatedReplicas: 2, availableReplicas: 1 }
  assert.deepEqual(cells({ ...body, status }), ['web', '1/1', 2, 1, '<unknown>', 'c', 'i:1', 'app=web'])
})
