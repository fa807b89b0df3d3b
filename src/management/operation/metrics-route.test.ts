import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PolicyRule } from '#apis/rbac/v1.ts'

import { allows } from './metrics-route.ts'

describe('allows', () => {
  const rows: readonly (readonly [string, PolicyRule, boolean])[] = [
    ['the path', { verbs: ['get'], nonResourceURLs: ['/metrics'] }, true],
    ['everything', { verbs: ['*'], nonResourceURLs: ['*'] }, true],
    ['a prefix', { verbs: ['get'], nonResourceURLs: ['/met*'] }, true],
    ['another path', { verbs: ['get'], nonResourceURLs: ['/metrics/slis'] }, false],
    ['another verb', { verbs: ['post'], nonResourceURLs: ['/metrics'] }, false],
    ['resources', { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }, false],
  ]
  for (const [what, rule, isAllowed] of rows) {
    it(`${isAllowed ? 'accepts' : 'refuses'} a rule for ${what}`, () => assert.equal(allows(rule), isAllowed))
  }
})
