import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'

import type { Kind } from '#apis/kinds.ts'
import type { KubeObject } from '#meta/object.ts'

import { type Member, Members, Projects, Roles, type Scope } from '../kinds/access.ts'
import type { User } from '../kinds/user.ts'
import { Memberships } from './memberships.ts'

describe('Memberships of a user', () => {
  let change: (member: Member, isDeleted: boolean) => void
  let memberships: Memberships
  const roles = new Map<string, Scope>([
    ['administrator', 'global'],
    ['user', 'global'],
    ['cluster-owner', 'cluster'],
    ['cluster-member', 'cluster'],
    ['project-owner', 'project'],
  ])
  const projects = new Map([
    ['p-1', 'c-1'],
    ['p-2', 'c-2'],
  ])

  beforeEach(() => {
    memberships = new Memberships({
      get: <T extends KubeObject>(kind: Kind<T>, name: string): T | undefined => {
        const metadata = { name }
        const found =
          kind.plural === Roles.plural
            ? roles.has(name) && { metadata, spec: { scope: roles.get(name), rules: [] } }
            : kind.plural === Projects.plural &&
              projects.has(name) && { metadata, spec: { cluster: projects.get(name), displayName: name } }
        return found === false ? undefined : (found as unknown as T)
      },
      list: () => [],
      listen: (kind, listener) => {
        assert.equal(kind.plural, Members.plural)
        change = listener as unknown as typeof change
        return () => undefined
      },
    })
  })

  const member = (name: string, spec: Member['spec']): Member => ({ metadata: { name }, spec })
  const jane: User = { metadata: { name: 'u-jane' }, spec: { username: 'jane' }, status: { groups: ['oidc:devs'] } }

  it('give no access without a Member object', () => {
    assert.equal(memberships.userIn(jane, 'c-1'), undefined)
    assert.equal(memberships.isAdministrator(jane), false)
  })

  it('become groups in a cluster: its roles and those of its projects', () => {
    change(member('a', { role: 'cluster-member', user: 'u-jane', cluster: 'c-1' }), false)
    change(member('b', { role: 'project-owner', group: 'oidc:devs', project: 'p-1' }), false)
    change(member('c', { role: 'project-owner', user: 'u-jane', project: 'p-2' }), false)
    const groups = ['hk:cluster:cluster-member', 'hk:project:p-1:project-owner', 'system:authenticated']
    assert.deepEqual(memberships.userIn(jane, 'c-1'), { name: 'u-jane', groups })
  })

  it('make an administrator the owner of every cluster', () => {
    change(member('a', { role: 'administrator', user: 'u-jane' }), false)
    assert.deepEqual(memberships.userIn(jane, 'c-9')?.groups, ['hk:cluster:cluster-owner', 'system:authenticated'])
  })

  it('end at once when the Member object is deleted', () => {
    const one = member('a', { role: 'cluster-owner', user: 'u-jane', cluster: 'c-1' })
    change(one, false)
    change(one, true)
    assert.equal(memberships.userIn(jane, 'c-1'), undefined)
  })

  const withoutEffect: readonly (readonly [string, Member['spec']])[] = [
    ['a global role for one cluster', { role: 'administrator', user: 'u-jane', cluster: 'c-1' }],
    ['a cluster role without a cluster', { role: 'cluster-owner', user: 'u-jane' }],
    ['a cluster role for a project', { role: 'cluster-owner', user: 'u-jane', project: 'p-1' }],
    ['a project role for a cluster', { role: 'project-owner', user: 'u-jane', cluster: 'c-1' }],
    ['a role that does not exist', { role: 'none', user: 'u-jane', cluster: 'c-1' }],
    ['a project that does not exist', { role: 'project-owner', user: 'u-jane', project: 'p-9' }],
    ['another user', { role: 'cluster-owner', user: 'u-john', cluster: 'c-1' }],
    ['a group that has the name of the user', { role: 'cluster-owner', group: 'u-jane', cluster: 'c-1' }],
  ]
  for (const [what, spec] of withoutEffect) {
    it(`give no access for ${what}`, () => {
      change(member('a', spec), false)
      assert.equal(memberships.userIn(jane, 'c-1'), undefined)
      assert.equal(memberships.isAdministrator(jane), false)
    })
  }
})
