import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PolicyRule } from '#apis/rbac/v1.ts'
import { resourceAccess } from '#auth/authorizer.ts'
import { RbacIndex } from '#auth/authorizers/rbac/rbac.ts'
import { EXTRA } from '#auth/credentials/service-account-name.ts'
import type { User } from '#auth/user.ts'
import { StatusError } from '#meta/status.ts'

import { createImpersonation } from './impersonation.ts'

const AUTH = 'authentication.k8s.io'
const jane: User = { name: 'jane', uid: '', groups: ['system:authenticated'], extra: {} }
const list = resourceAccess({ verb: 'list', resource: 'configmaps', namespace: 'default' })

const legacy = (resource: string, ...names: string[]): PolicyRule => rule('impersonate', '', resource, names)
const rule = (verb: string, group: string, resource: string, names: string[] = []): PolicyRule => ({
  verbs: [verb],
  apiGroups: [group],
  resources: [resource],
  ...(names.length === 0 ? {} : { resourceNames: names }),
})

async function become(
  rules: PolicyRule[],
  headers: string[],
  asker = jane,
  isConstrained = true,
): Promise<User | string> {
  const index = new RbacIndex()
  index.setClusterRole({ metadata: { name: 'r' }, rules })
  const roleRef = { apiGroup: '', kind: 'ClusterRole', name: 'r' }
  index.setBinding({ metadata: { name: 'b' }, roleRef, subjects: [{ kind: 'User', name: asker.name }] })
  const impersonate = createImpersonation({ authorizer: index, isConstrained })
  try {
    return await impersonate(asker, list, { rawHeaders: headers })
  } catch (error) {
    assert.ok(error instanceof StatusError)
    return `${error.status.code} ${error.message}`
  }
}

/** The text of a refusal. */
function shown(outcome: User | string): string {
  return typeof outcome === 'string' ? outcome : JSON.stringify(outcome)
}

describe('impersonation', () => {
  it('leaves requests without impersonation headers unchanged', () => {
    const impersonate = createImpersonation({ authorizer: new RbacIndex(), isConstrained: true })
    assert.equal(impersonate(jane, list, { rawHeaders: ['Accept', '*/*', 'Impersonate', 'x'] }), jane)
  })

  it('requires the header Impersonate-User if any other impersonation header is present', async () => {
    const text =
      '400 requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)} without impersonating a user name'
    assert.equal(await become([], ['Impersonate-Group', 'g']), text)
    assert.match(shown(await become([], ['Impersonate-Uid', '1'])), /^400 /)
    assert.match(shown(await become([], ['Impersonate-Extra-Scope', '1'])), /^400 /)
  })

  it('with the legacy verb requires permission for name, groups, UID and extra', async () => {
    const headers = ['Impersonate-User', 'joe', 'Impersonate-Group', 'a', 'impersonate-group', 'b']
    const more = [
      ...headers,
      'Impersonate-Uid',
      '7',
      'Impersonate-Extra-Example.com%2fScope',
      'x',
      'Impersonate-Extra-Example.com%2fScope',
      'y',
    ]
    const rules = [
      legacy('users', 'joe'),
      legacy('groups'),
      rule('impersonate', AUTH, 'uids'),
      rule('impersonate', AUTH, 'userextras/example.com/scope', ['x', 'y']),
    ]
    assert.deepEqual(await become(rules, more), {
      name: 'joe',
      uid: '7',
      groups: ['a', 'b', 'system:authenticated'],
      extra: { 'example.com/scope': ['x', 'y'] },
    })
    for (const missing of rules) {
      const outcome = await become(
        rules.filter((one) => one !== missing),
        more,
        jane,
        false,
      )
      assert.match(shown(outcome), /^403 .* cannot impersonate resource/, JSON.stringify(missing))
    }
  })

  it('adds the groups of service accounts and of the anonymous user, and keeps requested groups', async () => {
    const all = [legacy('users'), legacy('groups'), legacy('serviceaccounts')]
    const groupsOf = async (...headers: string[]) => ((await become(all, headers)) as User).groups
    assert.deepEqual(await groupsOf('Impersonate-User', 'system:serviceaccount:n1:bot'), [
      'system:serviceaccounts',
      'system:serviceaccounts:n1',
      'system:authenticated',
    ])
    assert.deepEqual(await groupsOf('Impersonate-User', 'system:serviceaccount:n1:bot', 'Impersonate-Group', 'x'), [
      'x',
      'system:authenticated',
    ])
    assert.deepEqual(await groupsOf('Impersonate-User', 'system:anonymous'), ['system:unauthenticated'])
    assert.deepEqual(await groupsOf('Impersonate-User', 'joe', 'Impersonate-Group', 'system:unauthenticated'), [
      'system:unauthenticated',
    ])
    assert.deepEqual(await groupsOf('Impersonate-User', 'system:node:alpha'), ['system:authenticated'])
  })

  it('checks permission for a service account in its namespace', async () => {
    const index = new RbacIndex()
    index.setRole({ metadata: { name: 'r', namespace: 'n1' }, rules: [legacy('serviceaccounts')] })
    const subjects = [{ kind: 'User', name: 'jane' }]
    index.setBinding({
      metadata: { name: 'b', namespace: 'n1' },
      roleRef: { apiGroup: '', kind: 'Role', name: 'r' },
      subjects,
    })
    const impersonate = createImpersonation({ authorizer: index, isConstrained: true })
    const as = async (name: string) => (await impersonate(jane, list, { rawHeaders: ['Impersonate-User', name] })).name
    assert.equal(await as('system:serviceaccount:n1:bot'), 'system:serviceaccount:n1:bot')
    await assert.rejects(as('system:serviceaccount:n2:bot'), /cannot impersonate/)
  })

  it('in constrained mode requires permission for the user and for the action', async () => {
    const being = rule('impersonate:user-info', AUTH, 'users', ['joe'])
    const doing = rule('impersonate-on:user-info:list', '', 'configmaps')
    const headers = ['Impersonate-User', 'joe']
    assert.equal(((await become([being, doing], headers)) as User).name, 'joe')
    assert.equal(
      await become([being], headers),
      '403 configmaps is forbidden: User "jane" cannot impersonate-on:user-info:list resource "configmaps" in API group "" in the namespace "default"',
    )
    assert.equal(
      await become([doing], headers),
      '403 users.authentication.k8s.io "joe" is forbidden: User "jane" cannot impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope',
    )
    assert.equal(
      await become([being, doing], headers, jane, false),
      '403 users "joe" is forbidden: User "jane" cannot impersonate resource "users" in API group "" at the cluster scope',
    )
  })

  it('in constrained mode never allows system:masters or empty names', async () => {
    const rules = ['users', 'groups', 'userextras/*'].map((resource) => rule('impersonate:user-info', AUTH, resource))
    rules.push(rule('impersonate-on:user-info:list', '', 'configmaps'))
    const as = (...headers: string[]) => become(rules, ['Impersonate-User', 'joe', ...headers])
    assert.match(
      shown(await as('Impersonate-Group', 'dev', 'Impersonate-Group', 'system:masters')),
      /impersonating the system:masters group is not allowed/,
    )
    assert.match(shown(await as('Impersonate-Group', '')), /impersonating the empty string group is not allowed/)
    assert.match(shown(await as('Impersonate-Extra-', 'x')), /empty string key/)
    assert.match(shown(await as('Impersonate-Extra-scope', 'x')), /invalid key/)
    assert.equal(typeof (await as('Impersonate-Group', 'dev')), 'object')
  })

  it('in constrained mode checks nodes and service accounts by name with separate verbs', async () => {
    const node = [
      rule('impersonate:arbitrary-node', AUTH, 'nodes', ['alpha']),
      rule('impersonate-on:arbitrary-node:list', '', 'configmaps'),
    ]
    assert.deepEqual(((await become(node, ['Impersonate-User', 'system:node:alpha'])) as User).groups, [
      'system:nodes',
      'system:authenticated',
    ])
    assert.match(shown(await become(node, ['Impersonate-User', 'system:node:beta'])), /^403/)
    assert.match(
      shown(await become(node, ['Impersonate-User', 'system:node:alpha', 'Impersonate-Group', 'x'])),
      /^403 users/,
    )
    const account = [
      rule('impersonate:serviceaccount', AUTH, 'serviceaccounts'),
      rule('impersonate-on:serviceaccount:list', '', 'configmaps'),
    ]
    assert.equal(((await become(account, ['Impersonate-User', 'system:serviceaccount:n1:a'])) as User).groups.length, 3)
    const info = [rule('impersonate:user-info', AUTH, '*'), rule('impersonate-on:user-info:list', '', '*')]
    for (const name of ['system:node:alpha', 'system:serviceaccount:n1:a']) {
      assert.match(shown(await become(info, ['Impersonate-User', name])), /^403/)
    }
  })

  it('allows an agent to impersonate the node of its token, and no other', async () => {
    const agent: User = {
      ...jane,
      name: 'system:serviceaccount:kube-system:agent',
      extra: { [EXTRA.nodeName]: ['alpha'] },
    }
    const rules = [
      rule('impersonate:associated-node', AUTH, 'nodes'),
      rule('impersonate-on:associated-node:list', '', 'configmaps'),
    ]
    assert.equal(
      ((await become(rules, ['Impersonate-User', 'system:node:alpha'], agent)) as User).name,
      'system:node:alpha',
    )
    assert.match(shown(await become(rules, ['Impersonate-User', 'system:node:beta'], agent)), /^403/)
    assert.match(shown(await become(rules, ['Impersonate-User', 'system:node:alpha'], { ...agent, extra: {} })), /^403/)
  })

  it('decodes header values as UTF-8, and accepts __proto__ as a key of extra', async () => {
    const rules = [legacy('users'), rule('impersonate', AUTH, '*')]
    const joe = (await become(rules, [
      'Impersonate-User',
      Buffer.from('José').toString('latin1'),
      'Impersonate-Extra-__proto__',
      'x',
    ])) as User
    assert.equal(joe.name, 'José')
    assert.deepEqual(Object.keys(joe.extra), ['__proto__'])
  })
})
