import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { APIService } from '#apis/apiregistration/v1.ts'

import { planCondition, type Verdict } from './availability.ts'

const passed: Verdict = { status: 'True', reason: 'Passed', message: 'all checks passed' }
const before = Date.parse('2026-01-01T00:00:00Z')
const service: APIService = {
  kind: 'APIService',
  apiVersion: 'apiregistration.k8s.io/v1',
  metadata: { name: 'v1.a.io' },
  spec: { groupPriorityMinimum: 1, versionPriority: 1 },
  status: {},
}

test('an update of the Available condition keeps its transition time, and is skipped if nothing changes', () => {
  const first = planCondition(service, passed, before)
  const since = '2026-01-01T00:00:00Z'
  assert.deepEqual(first?.status, { conditions: [{ type: 'Available', lastTransitionTime: since, ...passed }] })
  assert.deepEqual(service.status, {})
  assert.equal(planCondition(first, passed, before + 5000), undefined)
  const other = planCondition(first, { ...passed, message: 'so' }, before + 5000)
  assert.equal(other?.status?.conditions?.[0]?.lastTransitionTime, since)
  const lost = planCondition(first, { ...passed, status: 'False' }, before + 5000)
  assert.equal(lost?.status?.conditions?.[0]?.lastTransitionTime, '2026-01-01T00:00:05Z')
})

test('an update of the Available condition keeps all other conditions', () => {
  const mine = { type: 'Mine', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }
  const next = planCondition({ ...service, status: { conditions: [mine] } }, passed, before)
  assert.deepEqual(
    next?.status?.conditions?.map(({ type }) => type),
    ['Mine', 'Available'],
  )
})
