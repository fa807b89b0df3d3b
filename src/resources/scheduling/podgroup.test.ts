import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { podGroup } from './podgroup.ts'

const { read, create, update, cells } = tryRules(podGroup, { off: [] })
const body = {
  metadata: { name: 'g', namespace: 'ns' },
  spec: {
    schedulingPolicy: { gang: { minCount: 2 } },
    resourceClaims: [{ name: 'c', resourceClaimName: 'x' }],
  },
}

function condition(type: string, status = 'True', reason = 'R'): object {
  return { type, status, reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }
}

test('a PodGroup may refer to a template, and has one scheduling policy', async () => {
  assert.equal(read(body).spec.disruptionMode, 'Pod')
  assert.deepEqual((await create(body)).errors, [])
  const ref = 'spec.podGroupTemplateRef'
  const table: readonly (readonly [string, unknown, readonly string[]])[] = [
    [ref, { workload: { workloadName: 'w', podGroupTemplateName: 't' } }, []],
    [ref, {}, [`${ref}: Invalid value: "": must specify one of: \`workload\``]],
    [
      ref,
      { workload: {} },
      [`${ref}.workload.workloadName: Required value`, `${ref}.workload.podGroupTemplateName: Required value`],
    ],
    ['spec.schedulingPolicy', {}, ['spec.schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`']],
    [
      'spec.disruptionMode',
      'Node',
      ['spec.disruptionMode: Unsupported value: "Node": supported values: "Pod", "PodGroup"'],
    ],
    ['spec.priority', 2e9, ['spec.priority: Invalid value: 2000000000: must be less than or equal to 1000000000']],
    ['metadata.namespace', undefined, ['metadata.namespace: Required value']],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a PodGroup rejects updates of spec', async () => {
  const fixed = (field: string): string => `${field}: Invalid value: null: field is immutable`
  const five = Array.from({ length: 5 }, (_, at) => ({ name: `c${at}`, resourceClaimName: 'x' }))
  const table: readonly (readonly [string, unknown, readonly string[]])[] = [
    ['spec.podGroupTemplateRef', { workload: null }, [fixed('spec.podGroupTemplateRef')]],
    ['spec.schedulingPolicy.gang.minCount', 3, [fixed('spec.schedulingPolicy')]],
    ['spec.schedulingConstraints', { topology: [] }, [fixed('spec.schedulingConstraints')]],
    [
      'spec.resourceClaims',
      five,
      [fixed('spec.resourceClaims'), 'spec.resourceClaims: Too many: 5: must have at most 4 items'],
    ],
    ['spec.disruptionMode', 'PodGroup', [fixed('spec.disruptionMode')]],
    ['spec.priorityClassName', 'high', [fixed('spec.priorityClassName')]],
    ['spec.priority', 5, [fixed('spec.priority')]],
    ['metadata.labels', { a: 'b' }, []],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body)).errors, errors, path)
  }
})

test('a PodGroup drops fields of disabled gates, and keeps used ones immutable', async () => {
  const { create: createOff, update: updateOff } = tryRules(podGroup, {
    off: ['WorkloadAwarePreemption', 'DRAWorkloadResourceClaims', 'TopologyAwareWorkloadScheduling'],
  })
  const { object, errors } = await createOff(changed(body, 'spec.priority', 5))
  assert.deepEqual(
    [object.spec, errors],
    [{ podGroupTemplateRef: null, schedulingPolicy: { gang: { minCount: 2 } } }, []],
  )
  const used = { ...body, spec: { ...body.spec, priority: 5 } }
  assert.deepEqual((await updateOff(changed(used, 'spec.priority', 6), used)).errors, ['spec.priority: Forbidden'])
  assert.deepEqual((await updateOff(used, used)).errors, [])
  const bare = changed(body, 'spec.resourceClaims', undefined)
  const status = { resourceClaimStatuses: [{ name: 'c' }] }
  assert.deepEqual((await updateOff({ ...bare, status }, bare, 'status')).object.status, {})
})

test('a PodGroup accepts claims in its status', async () => {
  const at = 'status.resourceClaimStatuses'
  const table: readonly (readonly [object[], readonly RegExp[]])[] = [
    [[{ name: 'c', resourceClaimName: 'x' }], []],
    [[{ name: 'd' }], [/\[0\]\.name: Invalid value: "d": must match the name of an entry in `spec\.resourceClaims`$/]],
    [[{ name: 'c', resourceClaimName: 'A' }], [/\[0\]\.resourceClaimName: Invalid value: "A": a lowercase RFC 1123/]],
    [[{ name: 'c' }, { name: 'c' }], [/\[1\]: Duplicate value: \{"name":"c"\}$/]],
    [Array.from({ length: 5 }, () => ({ name: 'c' })), [/: Too many: 5: must have at most 4 items$/]],
  ]
  for (const [claims, expected] of table) {
    const { errors } = await update({ ...body, status: { resourceClaimStatuses: claims } }, body, 'status')
    assert.equal(errors.length, expected.length, JSON.stringify(claims))
    for (const [nth, error] of expected.entries()) {
      assert.ok(errors[nth]?.startsWith(at))
      assert.match(errors[nth] ?? '', error)
    }
  }
})

test('a PodGroup prints its state', () => {
  const show = (...conditions: object[]): unknown[] => cells({ ...body, status: { conditions } }).slice(1, 4)
  assert.deepEqual(show(), ['Gang', '<none>', 'Pending'])
  assert.deepEqual(show(condition('PodGroupScheduled')).at(2), 'Scheduled')
  assert.deepEqual(show(condition('PodGroupScheduled', 'False')).at(2), 'Unschedulable')
  const pushedOut = show(condition('PodGroupScheduled'), condition('DisruptionTarget', 'True', 'PreemptionByScheduler'))
  assert.deepEqual(pushedOut.at(2), 'PreemptionByScheduler')
  const basic = {
    ...body,
    spec: {
      schedulingPolicy: { basic: {} },
      podGroupTemplateRef: { workload: { workloadName: 'w', podGroupTemplateName: 't' } },
    },
  }
  assert.deepEqual(cells(basic).slice(1, 3), ['Basic', 'w'])
})
