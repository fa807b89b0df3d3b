import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { planReconcile, type RbacObject, ruleText, subjectText } from './reconciliation.ts'

const KEEP = { removeExtraPermissions: false, removeExtraSubjects: false }
const role = (verbs: string[], more: Partial<RbacObject> = {}): RbacObject => ({
  kind: 'Role',
  metadata: { name: 'r' },
  rules: [{ apiGroups: [''], resources: ['pods'], verbs }],
  ...more,
})

describe('kubectl auth reconcile', () => {
  it('creates a missing role', () => {
    assert.equal(planReconcile(role(['get']), undefined, KEEP).operation, 'create')
  })

  it('adds missing rules and keeps additional rules', () => {
    const { operation, object, missingRules, extraRules } = planReconcile(role(['get']), role(['list']), KEEP)
    assert.equal(operation, 'update')
    assert.deepEqual(
      object.rules?.map(({ verbs }) => verbs),
      [['list'], ['get']],
    )
    assert.deepEqual(missingRules.map(ruleText), [
      '{Verbs:[get] APIGroups:[] Resources:[pods] ResourceNames:[] NonResourceURLs:[]}',
    ])
    assert.equal(extraRules.length, 1)
  })

  it('removes additional rules with --remove-extra-permissions', () => {
    const options = { ...KEEP, removeExtraPermissions: true }
    assert.deepEqual(planReconcile(role(['get']), role(['get', 'list']), options).object.rules?.[0]?.verbs, ['get'])
  })

  it('changes nothing if the existing rules cover the expected ones', () => {
    assert.equal(planReconcile(role(['get']), role(['*']), KEEP).operation, 'none')
  })

  it('skips an object whose annotation disables updates', () => {
    const annotations = { 'rbac.authorization.kubernetes.io/autoupdate': 'false' }
    assert.ok(planReconcile(role(['get']), role(['list'], { metadata: { name: 'r', annotations } }), KEEP).isProtected)
  })

  const binding = (name: string, role2 = 'view'): RbacObject => ({
    kind: 'RoleBinding',
    metadata: { name: 'b' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role2 },
    subjects: [{ kind: 'User', name, apiGroup: 'rbac.authorization.k8s.io' }],
  })

  it('merges subjects of bindings, and recreates a binding to another role', () => {
    const { object, missingSubjects } = planReconcile(binding('a'), binding('b'), KEEP)
    assert.deepEqual(
      object.subjects?.map(({ name }) => name),
      ['b', 'a'],
    )
    assert.deepEqual(missingSubjects.map(subjectText), [
      '{Kind:User APIGroup:rbac.authorization.k8s.io Name:a Namespace:}',
    ])
    assert.equal(planReconcile(binding('a', 'edit'), binding('a'), KEEP).operation, 'recreate')
  })
})
