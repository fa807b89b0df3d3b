import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { BUILT_IN_ROLES } from '../access/built-in-roles.ts'
import type { Project, Role } from '../kinds/access.ts'
import { accessObjects, managementAccessObjects } from './access-objects.ts'

const roles = Object.entries(BUILT_IN_ROLES).map(([name, spec]): Role => ({ metadata: { name }, spec }))
const project: Project = {
  metadata: { name: 'p-1' },
  spec: { cluster: 'c-1', displayName: 'shop', namespaces: ['web', 'db'] },
}
const names = (objects: readonly { readonly metadata: { readonly name?: string } }[]): (string | undefined)[] =>
  objects.map(({ metadata }) => metadata.name)

describe('accessObjects() for RBAC in a managed cluster', () => {
  it('binds each ClusterRole of a cluster role to one group', () => {
    const { clusterRoleBindings } = accessObjects(roles, [])
    for (const { metadata, subjects } of clusterRoleBindings)
      assert.deepEqual(subjects, [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: metadata.name }])
    const owner = clusterRoleBindings.find(({ metadata }) => metadata.name === 'hk:cluster:cluster-owner')
    assert.equal(owner?.roleRef.name, 'cluster-admin')
  })

  it('creates ClusterRoles only for roles with rules', () => {
    const { clusterRoles } = accessObjects(roles, [])
    assert.ok(names(clusterRoles).includes('hk:cluster:cluster-member'))
    assert.ok(!names(clusterRoles).includes('hk:cluster:cluster-owner'))
  })

  it('binds each project role in each namespace of the project', () => {
    const { roleBindings } = accessObjects(roles, [project])
    const found = roleBindings.map(({ metadata, roleRef }) => `${metadata.namespace} ${metadata.name} ${roleRef.name}`)
    assert.deepEqual(found, [
      'web hk:project:p-1:project-owner admin',
      'web hk:project:p-1:project-member edit',
      'web hk:project:p-1:project-read-only view',
      'db hk:project:p-1:project-owner admin',
      'db hk:project:p-1:project-member edit',
      'db hk:project:p-1:project-read-only view',
    ])
  })

  it('lets members of a project see its namespaces', () => {
    const { clusterRoles } = accessObjects(roles, [project])
    const view = clusterRoles.find(({ metadata }) => metadata.name === 'hk:namespaces:p-1')
    assert.deepEqual(view?.rules, [
      { apiGroups: [''], resources: ['namespaces'], resourceNames: ['web', 'db'], verbs: ['get'] },
    ])
  })

  it('creates no bindings for a project without namespaces', () => {
    const { roleBindings, clusterRoles } = accessObjects(roles, [
      { ...project, spec: { ...project.spec, namespaces: [] } },
    ])
    assert.deepEqual(roleBindings, [])
    assert.ok(!names(clusterRoles).includes('hk:namespaces:p-1'))
  })
})

describe('managementAccessObjects() for RBAC of the management server', () => {
  it('binds global roles with rules to the management API', () => {
    assert.deepEqual(names(managementAccessObjects(roles).clusterRoleBindings), ['hk:global:administrator'])
  })
})
