import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { BUILT_IN_ROLES, USUAL_PROJECT_ROLES } from '../access/built-in-roles.ts'
import type { Member, Project, Role } from '../kinds/access.ts'
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
    const { clusterRoleBindings } = accessObjects({ roles, projects: [], members: [] })
    for (const { metadata, subjects } of clusterRoleBindings)
      assert.deepEqual(subjects, [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: metadata.name }])
    const owner = clusterRoleBindings.find(({ metadata }) => metadata.name === 'hk:cluster:cluster-owner')
    assert.equal(owner?.roleRef.name, 'cluster-admin')
  })

  it('creates ClusterRoles only for roles with rules', () => {
    const { clusterRoles } = accessObjects({ roles, projects: [], members: [] })
    assert.ok(names(clusterRoles).includes('hk:cluster:cluster-member'))
    assert.ok(!names(clusterRoles).includes('hk:cluster:cluster-owner'))
  })

  it('binds the built-in project roles in each namespace of the project', () => {
    const { roleBindings } = accessObjects({ roles, projects: [project], members: [] })
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

  it('binds a custom project role only in projects where a member has it', () => {
    const members: Member[] = [
      { metadata: { name: 'm-1' }, spec: { role: 'secrets-view', user: 'u-1', project: 'p-1' } },
      { metadata: { name: 'm-2' }, spec: { role: 'services-view', user: 'u-1', project: 'p-2' } },
    ]
    const { roleBindings } = accessObjects({ roles, projects: [project], members })
    const found = names(roleBindings).filter((name) => !USUAL_PROJECT_ROLES.has(name?.split(':').at(-1) ?? ''))
    assert.deepEqual(found, ['hk:project:p-1:secrets-view', 'hk:project:p-1:secrets-view'])
  })

  it('binds the ClusterRole that a role inherits, and one of the own rules of the role', () => {
    const rules = [{ apiGroups: ['', 'management.hyperkube.io'], resources: ['secrets'], verbs: ['get'] }]
    const both: Role = { metadata: { name: 'both' }, spec: { scope: 'cluster', inherits: 'view', rules } }
    const { clusterRoles, clusterRoleBindings } = accessObjects({ roles: [both], projects: [], members: [] })
    assert.deepEqual(
      clusterRoleBindings.map(({ metadata, roleRef, subjects }) => [metadata.name, roleRef.name, subjects?.[0]?.name]),
      [
        ['hk:cluster:both', 'view', 'hk:cluster:both'],
        ['hk:cluster:both:rules', 'hk:cluster:both', 'hk:cluster:both'],
      ],
    )
    assert.deepEqual(clusterRoles[0]?.rules, [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }])
  })

  it('creates no objects for rules about routes of the management server', () => {
    const { clusterRoles, clusterRoleBindings } = accessObjects({ roles, projects: [project], members: [] })
    assert.ok(!JSON.stringify(clusterRoles).includes('management.hyperkube.io"'))
    assert.ok(!names(clusterRoleBindings).includes('hk:cluster:members-manage'))
  })

  it('lets members of a project see its namespaces', () => {
    const { clusterRoles } = accessObjects({ roles, projects: [project], members: [] })
    const view = clusterRoles.find(({ metadata }) => metadata.name === 'hk:namespaces:p-1')
    assert.deepEqual(view?.rules, [
      { apiGroups: [''], resources: ['namespaces'], resourceNames: ['web', 'db'], verbs: ['get'] },
    ])
  })

  it('creates no bindings for a project without namespaces', () => {
    const { roleBindings, clusterRoles } = accessObjects({
      roles,
      projects: [{ ...project, spec: { ...project.spec, namespaces: [] } }],
      members: [],
    })
    assert.deepEqual(roleBindings, [])
    assert.ok(!names(clusterRoles).includes('hk:namespaces:p-1'))
  })
})

describe('managementAccessObjects() for RBAC of the management server', () => {
  it('binds global roles with rules to the management API', () => {
    assert.deepEqual(names(managementAccessObjects(roles).clusterRoleBindings), [
      'hk:global:administrator',
      'hk:global:clusters-create',
      'hk:global:clustertemplates-create',
      'hk:global:users-manage',
      'hk:global:roles-manage',
      'hk:global:metrics-view',
    ])
  })
})
