import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { workload } from './workload.ts'

const { create, update, cells } = tryRules(workload, { off: [] })
const template = { name: 't', schedulingPolicy: { gang: { minCount: 2 } } }
const body = { metadata: { name: 'w', namespace: 'ns' }, spec: { podGroupTemplates: [template] } }
const T = 'spec.podGroupTemplates.0.'
const AT = 'spec.podGroupTemplates[0]'

test('a Workload has templates, each with one scheduling policy', async () => {
  assert.deepEqual((await create(body)).errors, [])
  const many = Array.from({ length: 9 }, (_, at) => ({ ...template, name: `t${at}` }))
  const whole = '{"name":"t","schedulingPolicy":{"gang":{"minCount":2}},"schedulingConstraints":null}'
  const claim = '{"name":"a","resourceClaimName":"x"}'
  const table: readonly (readonly [string, unknown, readonly string[]])[] = [
    ['spec.podGroupTemplates', [], ['spec.podGroupTemplates: Required value']],
    ['spec.podGroupTemplates', many, ['spec.podGroupTemplates: Too many: 9: must have at most 8 items']],
    ['spec.podGroupTemplates', [template, template], [`spec.podGroupTemplates[1]: Duplicate value: ${whole}`]],
    [`${T}name`, '', [`${AT}.name: Required value`]],
    [
      `${T}schedulingPolicy`,
      {},
      [`${AT}.schedulingPolicy: Invalid value: "": must specify one of: \`basic\`, \`gang\``],
    ],
    [
      `${T}schedulingPolicy.basic`,
      {},
      [`${AT}.schedulingPolicy: Invalid value: "{basic, gang}": must specify exactly one of: \`basic\`, \`gang\``],
    ],
    [`${T}schedulingPolicy.gang.minCount`, 0, [`${AT}.schedulingPolicy.gang.minCount: Required value`]],
    [
      `${T}schedulingPolicy.gang.minCount`,
      -1,
      [`${AT}.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1`],
    ],
    [
      `${T}schedulingConstraints`,
      { topology: [{ key: 'a' }, { key: 'b' }] },
      [`${AT}.schedulingConstraints.topology: Too many: 2: must have at most 1 item`],
    ],
    [
      `${T}schedulingConstraints`,
      { topology: [{ key: '' }] },
      [`${AT}.schedulingConstraints.topology[0].key: Required value`],
    ],
    [
      `${T}resourceClaims`,
      [
        { name: 'a', resourceClaimName: 'x' },
        { name: 'a', resourceClaimName: 'x' },
      ],
      [`${AT}.resourceClaims[1]: Duplicate value: ${claim}`],
    ],
    [
      `${T}resourceClaims`,
      [{ name: 'a' }],
      [
        `${AT}.resourceClaims[0]: Invalid value: "": must specify one of: \`resourceClaimName\`, \`resourceClaimTemplateName\``,
      ],
    ],
    [`${T}disruptionMode`, 'x', [`${AT}.disruptionMode: Unsupported value: "x": supported values: "Pod", "PodGroup"`]],
    [`${T}priority`, 2e9, [`${AT}.priority: Invalid value: 2000000000: must be less than or equal to 1000000000`]],
    [
      'spec.controllerRef',
      { kind: '', name: 'a/b' },
      ['spec.controllerRef.kind: Required value', `spec.controllerRef.name: Invalid value: "a/b": may not contain '/'`],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a Workload rejects updates of spec', async () => {
  const fixed = (field: string): string => `${field}: Invalid value: null: field is immutable`
  assert.deepEqual((await update(changed(body, `${T}name`, 'u'), body)).errors, [fixed('spec.podGroupTemplates')])
  assert.deepEqual((await update(changed(body, 'spec.podGroupTemplates', []), body)).errors, [
    fixed('spec.podGroupTemplates'),
    'spec.podGroupTemplates: Required value',
  ])
  assert.deepEqual((await update(changed(body, 'spec.controllerRef', { kind: 'a', name: 'b' }), body)).errors, [
    fixed('spec.controllerRef'),
  ])
  assert.deepEqual((await update(changed(body, 'metadata.labels', { a: 'b' }), body)).errors, [])
})

test('a Workload drops fields of disabled gates, unless they were set before', async () => {
  const off = ['TopologyAwareWorkloadScheduling', 'DRAWorkloadResourceClaims', 'WorkloadAwarePreemption']
  const strict = tryRules(workload, { off })
  const full = {
    ...template,
    schedulingConstraints: { topology: [{ key: 'a' }] },
    resourceClaims: [{ name: 'a', resourceClaimName: 'x' }],
    disruptionMode: 'Pod',
    priorityClassName: 'high',
    priority: 5,
  }
  const rich = changed(body, 'spec.podGroupTemplates', [full])
  const { object, errors } = await strict.create(rich)
  assert.deepEqual(errors, [])
  assert.deepEqual(object.spec.podGroupTemplates, [{ ...template, schedulingConstraints: null }])
  const kept = await strict.update(changed(rich, 'metadata.labels', { a: 'b' }), rich)
  assert.deepEqual([kept.object.spec.podGroupTemplates, kept.errors], [[full], []])
})

test('a Workload prints its name and age', () => {
  assert.deepEqual(cells(body), ['w', '<unknown>'])
})
