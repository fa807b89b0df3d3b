import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { inheritsField, rulesField, scopeField } from './role-fields.ts'

const rule = (more: object = {}): object => ({ apiGroups: [''], resources: ['pods'], verbs: ['get'], ...more })

describe('rulesField', () => {
  it('accepts rules for resources and for paths', () => {
    const rules = [rule(), rule({ resourceNames: ['a'] }), { nonResourceURLs: ['/metrics'], verbs: ['get'] }]
    assert.deepEqual(rulesField(rules, 'cluster'), rules)
  })

  const refused: readonly (readonly [string, unknown])[] = [
    ['an object', {}],
    ['a string instead of a rule', ['pods']],
    ['null instead of a rule', [null]],
    ['a rule with an unknown field', [rule({ resource: ['pods'] })]],
    ['a rule without verbs', [{ apiGroups: [''], resources: ['pods'] }]],
    ['a rule with an empty list of verbs', [rule({ verbs: [] })]],
    ['a rule without API groups', [{ resources: ['pods'], verbs: ['get'] }]],
    ['a rule with an empty list of resources', [rule({ resources: [] })]],
    ['a rule with verbs only', [{ verbs: ['get'] }]],
    ['a rule with both resources and paths', [rule({ nonResourceURLs: ['/'] })]],
    ['a number as a verb', [rule({ verbs: [1] })]],
    ['a verb of 254 characters', [rule({ verbs: ['x'.repeat(254)] })]],
    ['a rule with 201 verbs', [rule({ verbs: Array.from({ length: 201 }, () => 'get') })]],
    ['201 rules', Array.from({ length: 201 }, () => rule())],
  ]
  for (const [what, value] of refused)
    it(`refuses ${what}`, () => assert.throws(() => rulesField(value, 'cluster'), { name: 'StatusError' }))

  it('refuses paths in projects', () => {
    assert.throws(() => rulesField([{ nonResourceURLs: ['/'], verbs: ['get'] }], 'project'), /projects have no/)
  })
})

describe('inheritsField', () => {
  it('accepts names of ClusterRoles, for clusters and projects', () => {
    assert.deepEqual(inheritsField('system:monitoring', 'cluster'), { inherits: 'system:monitoring' })
    assert.deepEqual(inheritsField(undefined, 'global'), {})
    for (const value of ['', 'a/b', '..', 1, 'x'.repeat(254)]) assert.throws(() => inheritsField(value, 'cluster'))
    assert.throws(() => inheritsField('view', 'global'), /cannot inherit/)
  })
})

describe('scopeField', () => {
  it('accepts the three scopes', () => {
    for (const scope of ['global', 'cluster', 'project']) assert.equal(scopeField(scope), scope)
    for (const value of [undefined, '', 'Cluster', {}]) assert.throws(() => scopeField(value), /scope must be/)
  })
})
