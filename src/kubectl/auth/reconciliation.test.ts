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

describe('reconciling roles and bindings', () => {
  it('creates what is not there', () => {
    assert.equal(planReconcile(role(['get']), undefined, KEEP).operation, 'create')
  })

  it('adds rights that are missing, and leaves those that are too much', () => {
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

  it('takes away what is too much when told', () => {
    const wish = { ...KEEP, removeExtraPermissions: true }
    assert.deepEqual(planReconcile(role(['get']), role(['get', 'list']), wish).object.rules?.[0]?.verbs, ['get'])
  })

  it('does nothing where all is covered', () => {
    assert.equal(planReconcile(role(['get']), role(['*']), KEEP).operation, 'none')
  })

  it('says when an object is to be left alone', () => {
    const annotations = { 'rbac.authorization.kubernetes.io/autoupdate': 'false' }
    assert.ok(planReconcile(role(['get']), role(['list'], { metadata: { name: 'r', annotations } }), KEEP).isProtected)
  })

  const binding = (name: string, role2 = 'view'): RbacObject => ({
    kind: 'RoleBinding',
    metadata: { name: 'b' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role2 },
    subjects: [{ kind: 'User', name, apiGroup: 'rbac.authorization.k8s.io' }],
  })

  it('joins the subjects of bindings, and makes those to another role anew', () => {
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
