import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PolicyRule } from '#apis/rbac/v1.ts'

import { allows } from './metrics-route.ts'

describe('allows() for GET /metrics by the rule of a role', () => {
  const rows: readonly (readonly [string, PolicyRule, boolean])[] = [
    ['the path /metrics', { verbs: ['get'], nonResourceURLs: ['/metrics'] }, true],
    ['all paths', { verbs: ['*'], nonResourceURLs: ['*'] }, true],
    ['a prefix of the path', { verbs: ['get'], nonResourceURLs: ['/met*'] }, true],
    ['another path', { verbs: ['get'], nonResourceURLs: ['/metrics/slis'] }, false],
    ['another verb', { verbs: ['post'], nonResourceURLs: ['/metrics'] }, false],
    ['resources', { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }, false],
  ]
  for (const [what, rule, isAllowed] of rows) {
    it(`${isAllowed ? 'accepts' : 'refuses'} a rule for ${what}`, () => assert.equal(allows(rule), isAllowed))
  }
})
