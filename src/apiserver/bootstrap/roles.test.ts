import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ClusterRole, ClusterRoleBinding } from '#apis/rbac/v1.ts'
import { pathAccess, resourceAccess } from '#auth/authorizer.ts'
import { RbacIndex } from '#auth/authorizers/rbac/rbac.ts'
import { RuleTable, ruleRequestOf } from '#model/rule-table.ts'

import { planReconcile } from './reconcile.ts'
import { parseRights } from './role-text.ts'
import { AUTO_UPDATE, bootstrapPolicy, nodeRules } from './roles.ts'

const off = (): boolean => false
const policy = bootstrapPolicy(off)
const names = (list: readonly { metadata: { name?: string } }[]): (string | undefined)[] =>
  list.map(({ metadata }) => metadata.name)

describe('default RBAC policy', () => {
  it('has as many roles and bindings as Kubernetes v1.36 with default feature gates', () => {
    const { clusterRoles, clusterRoleBindings, roles, roleBindings } = policy
    assert.deepEqual(
      [clusterRoles, clusterRoleBindings, roles, roleBindings].map(({ length }) => length),
      [69, 50, 7, 7],
    )
    for (const list of [clusterRoles, clusterRoleBindings]) assert.equal(new Set(names(list)).size, list.length)
    for (const { metadata } of [...clusterRoles, ...clusterRoleBindings, ...roles, ...roleBindings]) {
      assert.equal(metadata.labels?.['kubernetes.io/bootstrapping'], 'rbac-defaults')
      assert.equal(metadata.annotations?.[AUTO_UPDATE], 'true')
    }
  })

  it('binds only roles that exist', () => {
    const roles = new Set(names(policy.clusterRoles))
    for (const { roleRef } of policy.clusterRoleBindings) assert.ok(roles.has(roleRef.name), roleRef.name)
    const local = new Set(policy.roles.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`))
    for (const { metadata, roleRef } of policy.roleBindings)
      assert.ok(local.has(`${metadata.namespace}/${roleRef.name}`))
  })

  it('has additional roles for enabled feature gates', () => {
    const more = bootstrapPolicy((gate) => gate === 'ClusterTrustBundle')
    const added = names(more.clusterRoles).filter((name) => !names(policy.clusterRoles).includes(name))
    assert.deepEqual(
      new Set(added),
      new Set([
        'system:cluster-trust-bundle-discovery',
        'system:controller:kube-apiserver-serving-clustertrustbundle-publisher',
      ]),
    )
    assert.equal(nodeRules((gate) => gate === 'ClusterTrustBundle').length, nodeRules(off).length + 1)
  })

  it('allows only administrators to write Endpoints (CVE-2021-25740)', () => {
    for (const name of ['system:aggregate-to-admin', 'system:aggregate-to-edit', 'system:aggregate-to-view']) {
      const table = new RuleTable(policy.clusterRoles.find(({ metadata }) => metadata.name === name)?.rules ?? [])
      for (const verb of ['create', 'update', 'patch', 'delete']) {
        const may = (group: string, resource: string): boolean =>
          table.allows(ruleRequestOf(resourceAccess({ verb, group, resource })))
        assert.equal(may('', 'endpoints') || may('discovery.k8s.io', 'endpointslices'), false, name)
      }
    }
  })

  it('gives anonymous users access to health and version only', () => {
    const index = new RbacIndex()
    for (const role of policy.clusterRoles) index.setClusterRole(role)
    for (const binding of policy.clusterRoleBindings) index.setBinding(binding)
    const anonymous = { name: 'system:anonymous', uid: '', groups: ['system:unauthenticated'], extra: {} }
    const may = (path: string): boolean => index.authorize(anonymous, pathAccess('get', path)).allowed
    assert.deepEqual(['/healthz', '/livez', '/readyz', '/version', '/version/'].map(may), Array(5).fill(true))
    assert.deepEqual(
      ['/', '/api', '/apis', '/metrics', '/openapi/v2', '/readyz/etcd', '/openid/v1/jwks'].map(may),
      Array(7).fill(false),
    )
    assert.equal(index.authorize(anonymous, resourceAccess({ verb: 'get', resource: 'pods' })).allowed, false)
    const authenticated = { ...anonymous, name: 'x', groups: ['system:authenticated'] }
    assert.equal(index.authorize(authenticated, pathAccess('get', '/api')).allowed, true)
    assert.equal(
      index.authorize({ ...authenticated, groups: ['system:masters'] }, pathAccess('delete', '/x')).allowed,
      true,
    )
  })
})

describe('text format of RBAC rules', () => {
  it('is parsed into policy rules, without the rules of disabled gates', () => {
    assert.deepEqual(
      parseRights(
        ['read create: a a/b @ core apps = x y', 'get: /m /n/*', 'list: z ? On', 'list: z ? Off'],
        (gate) => gate === 'On',
      ),
      [
        {
          verbs: ['create', 'get', 'list', 'watch'],
          apiGroups: ['', 'apps'],
          resources: ['a', 'a/b'],
          resourceNames: ['x', 'y'],
        },
        { verbs: ['get'], nonResourceURLs: ['/m', '/n/*'] },
        { verbs: ['list'], apiGroups: [''], resources: ['z'] },
      ],
    )
    for (const text of ['', 'get', 'get pods', ': pods']) assert.throws(() => parseRights([text], off), /Cannot read/)
  })
})

describe('reconciliation of the default RBAC policy', () => {
  const rule = { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] }
  const wanted: ClusterRole = {
    metadata: { name: 'r', labels: { a: '1' }, annotations: { [AUTO_UPDATE]: 'true' } },
    rules: [rule],
  }
  const existing: ClusterRole = { ...wanted, metadata: { ...wanted.metadata, uid: 'u' } }
  const binding: ClusterRoleBinding = {
    metadata: { name: 'b' },
    roleRef: { apiGroup: 'g', kind: 'ClusterRole', name: 'r' },
    subjects: [{ kind: 'Group', apiGroup: 'g', name: 'x' }],
  }

  it('creates missing objects and leaves correct ones unchanged', () => {
    assert.deepEqual(planReconcile(undefined, wanted), { action: 'create', object: wanted })
    assert.deepEqual(planReconcile(existing, wanted), { action: 'none' })
    assert.deepEqual(planReconcile(binding, binding), { action: 'none' })
  })

  it('adds missing rules and keeps rules that users added', () => {
    const extra = { verbs: ['get'], apiGroups: [''], resources: ['secrets'] }
    const plan = planReconcile({ ...existing, rules: [{ ...rule, verbs: ['get'] }, extra] }, wanted)
    assert.ok(plan.action === 'update')
    assert.deepEqual(plan.object.rules, [{ ...rule, verbs: ['get'] }, extra, { ...rule, verbs: ['list'] }])
    assert.equal(plan.object.metadata.uid, 'u')
  })

  it('adds missing labels and keeps labels that users changed', () => {
    const plan = planReconcile({ ...existing, metadata: { ...existing.metadata, labels: { b: '2' } } }, wanted)
    assert.ok(plan.action === 'update')
    assert.deepEqual(plan.object.metadata.labels, { a: '1', b: '2' })
    assert.equal(
      planReconcile({ ...existing, metadata: { ...existing.metadata, labels: { a: '9' } } }, wanted).action,
      'none',
    )
  })

  it('skips objects whose annotation disables reconciliation', () => {
    const guarded = {
      ...existing,
      rules: [],
      metadata: { ...existing.metadata, annotations: { [AUTO_UPDATE]: 'false' } },
    }
    assert.equal(planReconcile(guarded, wanted).action, 'none')
  })

  it('adds missing subjects, and recreates a binding that refers to another role', () => {
    const plan = planReconcile({ ...binding, subjects: [{ kind: 'User', name: 'me' }] }, binding)
    assert.ok(plan.action === 'update')
    assert.equal(plan.object.subjects?.length, 2)
    const other = { ...binding, roleRef: { ...binding.roleRef, name: 'z' } }
    assert.deepEqual(planReconcile(other, binding), { action: 'recreate', object: binding })
  })

  it('keeps the aggregation rule of aggregated roles, and adds none to other roles', () => {
    const selector = { matchLabels: { x: 'true' } }
    const gathers = { ...wanted, rules: null, aggregationRule: { clusterRoleSelectors: [selector] } }
    const filled = { ...gathers, rules: [rule] }
    assert.equal(planReconcile<ClusterRole>(filled, gathers).action, 'none')
    const lost = planReconcile<ClusterRole>({ ...filled, aggregationRule: { clusterRoleSelectors: [] } }, gathers)
    assert.ok(lost.action === 'update')
    assert.deepEqual(lost.object.aggregationRule, gathers.aggregationRule)
    const stopped = planReconcile<ClusterRole>(
      { ...existing, aggregationRule: { clusterRoleSelectors: [selector] } },
      wanted,
    )
    assert.ok(stopped.action === 'update')
    assert.equal('aggregationRule' in stopped.object, false)
  })
})
