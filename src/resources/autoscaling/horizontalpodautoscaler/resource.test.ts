import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../../rules.fixture.ts'
import { horizontalPodAutoscaler } from './resource.ts'

const { create, update, read, cells } = tryRules(horizontalPodAutoscaler)

const body = {
  metadata: { name: 'web', namespace: 'ns' },
  spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }, minReplicas: 2, maxReplicas: 5 },
}

const cpu = { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } }

test('a HorizontalPodAutoscaler has a target of 80 percent CPU utilization by default', () => {
  const { spec } = read(changed(body, 'spec.minReplicas', undefined))
  assert.equal(spec.minReplicas, 1)
  assert.deepEqual(spec.metrics, [changed(cpu, 'resource.target.averageUtilization', 80)])
  assert.equal(spec.behavior, undefined)
})

test('a HorizontalPodAutoscaler completes scaling rules with defaults', () => {
  const { behavior } = read(changed(body, 'spec.behavior', { scaleDown: { selectPolicy: 'Min' } })).spec
  assert.deepEqual(behavior, {
    scaleUp: {
      stabilizationWindowSeconds: 0,
      selectPolicy: 'Max',
      policies: [
        { type: 'Pods', value: 4, periodSeconds: 15 },
        { type: 'Percent', value: 100, periodSeconds: 15 },
      ],
    },
    scaleDown: { selectPolicy: 'Min', policies: [{ type: 'Percent', value: 100, periodSeconds: 15 }] },
  })
})

test('a HorizontalPodAutoscaler drops annotations that carry fields of v2 in v1', () => {
  const annotations = { 'autoscaling.alpha.kubernetes.io/metrics': '[]', mine: 'x' }
  assert.deepEqual(read(changed(body, 'metadata.annotations', annotations)).metadata.annotations, { mine: 'x' })
})

test('a HorizontalPodAutoscaler rejects invalid bounds and targets', async () => {
  assert.deepEqual((await create(body)).errors, [])
  const target = 'spec.scaleTargetRef'
  const table: readonly (readonly [string, unknown, readonly string[]])[] = [
    [
      'spec.minReplicas',
      0,
      [
        'spec.minReplicas: Invalid value: 0: must be greater than or equal to 1',
        'spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas',
      ],
    ],
    [
      'spec.maxReplicas',
      0,
      [
        'spec.maxReplicas: Required value: must be set and greater than 0',
        'spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`',
      ],
    ],
    ['spec.maxReplicas', 1, ['spec.maxReplicas: Invalid value: 1: must be greater than or equal to `minReplicas`']],
    [`${target}.kind`, '', [`${target}.kind: Required value`]],
    [`${target}.name`, 'a/b', [`${target}.name: Invalid value: "a/b": may not contain '/'`]],
    [`${target}.apiVersion`, 'v1', [`${target}.apiVersion: Invalid value: "v1": apiVersion must specify API group`]],
    [
      `${target}.apiVersion`,
      'a/b/c',
      [`${target}.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c`],
    ],
    [target, { kind: 'ReplicationController', name: 'x' }, []],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, `${path} ${JSON.stringify(value)}`)
  }
})

test('a HorizontalPodAutoscaler requires one source and a matching target for a metric', async () => {
  const at = 'spec.metrics[0]'
  const populate = 'must populate information for the given metric source'
  const metric = (type: string, source: string, target: object, rest: object = { metric: { name: 'm' } }): object => ({
    type,
    [source]: { ...rest, target },
  })
  const table: readonly (readonly [object, readonly string[]])[] = [
    [cpu, []],
    [
      { type: 'Odd' },
      [
        `${at}.type: Unsupported value: "Odd": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"`,
        `${at}.type: Unsupported value: "Odd": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"`,
      ],
    ],
    [{ type: 'Pods' }, [`${at}.pods: Required value: ${populate}`]],
    [{ ...cpu, type: 'Pods' }, [`${at}.pods: Required value: ${populate}`]],
    [
      { ...cpu, ...metric('Resource', 'pods', { type: 'AverageValue', averageValue: '1' }) },
      [`${at}.pods: Forbidden: must populate the given metric source only`],
    ],
    [
      metric('Pods', 'pods', { type: 'Value', value: '0' }),
      [
        `${at}.pods.target.value: Invalid value: "0": must be positive`,
        `${at}.pods.target.averageValue: Required value: must specify a positive target averageValue`,
      ],
    ],
    [
      metric('External', 'external', { type: 'Value', value: '1', averageValue: '1' }),
      [`${at}.external.target.value: Forbidden: may not set both a target value for metric and a per-pod target`],
    ],
    [
      metric('ContainerResource', 'containerResource', { type: 'Utilization' }, { name: 'cpu', container: '' }),
      [
        `${at}.containerResource.container: Required value: must specify a container`,
        `${at}.containerResource.target.averageUtilization: Required value: must set either a target raw value or a target utilization`,
      ],
    ],
    [
      metric(
        'Object',
        'object',
        { type: 'X', value: '1' },
        { metric: { name: '' }, describedObject: { kind: 'S', name: 's' } },
      ),
      [
        `${at}.object.metric.name: Required value: must specify a metric name`,
        `${at}.object.target.type: Invalid value: "X": must be either Utilization, Value, or AverageValue`,
      ],
    ],
  ]
  for (const [one, errors] of table) {
    assert.deepEqual((await create(changed(body, 'spec.metrics', [one]))).errors, errors, JSON.stringify(one))
  }
})

test('a HorizontalPodAutoscaler rejects invalid scaling policies', async () => {
  const up = 'spec.behavior.scaleUp'
  const scaleUp = {
    stabilizationWindowSeconds: 3601,
    selectPolicy: 'Most',
    policies: [{ type: 'Nodes', value: 0, periodSeconds: 1801 }],
    tolerance: '-1',
  }
  assert.deepEqual((await create(changed(body, 'spec.behavior', { scaleUp }))).errors, [
    `${up}.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600`,
    `${up}.selectPolicy: Unsupported value: "Most": supported values: "Disabled", "Max", "Min"`,
    `${up}.policies[0].type: Unsupported value: "Nodes": supported values: "Percent", "Pods"`,
    `${up}.policies[0].value: Invalid value: 0: must be greater than zero`,
    `${up}.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800`,
    `${up}.tolerance: Invalid value: "-1": must be greater than or equal to 0`,
  ])
  const without = tryRules(horizontalPodAutoscaler, { off: ['HPAConfigurableTolerance'] })
  const { object } = await without.create(changed(body, 'spec.behavior', { scaleUp }))
  assert.equal(object.spec.behavior?.scaleUp?.tolerance, undefined)
})

test('a HorizontalPodAutoscaler rejects minReplicas 0 while its feature gate is off, unless the old object has it', async () => {
  const external = { type: 'External', external: { metric: { name: 'm' }, target: { type: 'Value', value: '1' } } }
  const zero = { ...body, spec: { ...body.spec, minReplicas: 0, metrics: [external] } }
  assert.equal((await create(zero)).errors.length, 1)
  assert.deepEqual((await tryRules(horizontalPodAutoscaler, { off: [] }).create(zero)).errors, [])
  assert.deepEqual((await update(zero, zero)).errors, [])
})

test('a HorizontalPodAutoscaler keeps an invalid target that the old object has', async () => {
  const old = changed(body, 'spec.scaleTargetRef.apiVersion', 'v1')
  assert.deepEqual((await update(changed(old, 'spec.maxReplicas', 6), old)).errors, [])
})

test('a HorizontalPodAutoscaler validates replicas in the status and leaves the spec alone', async () => {
  const next = { ...changed(body, 'spec.maxReplicas', 9), status: { currentReplicas: -1, desiredReplicas: 2 } }
  const { errors, object } = await update(next, body, 'status')
  assert.deepEqual(errors, ['status.currentReplicas: Invalid value: -1: must be greater than or equal to 0'])
  assert.equal(object.spec.maxReplicas, 5)
})

test('a HorizontalPodAutoscaler prints its targets', () => {
  const pods = { type: 'Pods', pods: { metric: { name: 'm' }, target: { type: 'AverageValue', averageValue: '5' } } }
  const object = {
    type: 'Object',
    object: {
      metric: { name: 'm' },
      describedObject: { kind: 'S', name: 's' },
      target: { type: 'AverageValue', averageValue: '5' },
    },
  }
  const currentMetrics = [{ type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 7 } } }]
  const targets = (metrics: object[], status: object): unknown =>
    cells({ ...changed(body, 'spec.metrics', metrics), status })[2]
  assert.deepEqual(cells({ ...body, status: { currentReplicas: 3 } }), [
    'web',
    'Deployment/web',
    'cpu: <unknown>/80%',
    '2',
    5,
    3,
    '<unknown>',
  ])
  assert.equal(targets([cpu, pods, object], { currentMetrics }), 'cpu: 7%/50%, <unknown>/5 + 1 more...')
  assert.equal(targets([object], {}), '<unknown>/5 (avg)')
})
