import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { requestInfoOf } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'

import { createPolicyEvaluator, type PolicyRule } from './policy.ts'

const jane: User = { name: 'jane', uid: '', groups: ['dev', 'system:authenticated'], extra: {} }

function levelOf(rule: Omit<PolicyRule, 'level'>, method: string, path: string, user: User | undefined = jane): string {
  const evaluate = createPolicyEvaluator({ rules: [{ level: 'Request', ...rule }] })
  return evaluate(user, requestInfoOf(method, path, undefined)).level
}

const POD = '/api/v1/namespaces/a/pods/web'
const LOG = `${POD}/log`
const SCALE = '/apis/apps/v1/namespaces/a/deployments/web/scale'
const core = (resources: string[], resourceNames: string[] = []) => ({ resources: [{ resources, resourceNames }] })

describe('a rule of an audit policy', () => {
  const matching: readonly (readonly [string, Omit<PolicyRule, 'level'>, string, string])[] = [
    ['every request if it has no conditions', {}, 'GET', POD],
    ['a user', { users: ['joe', 'jane'] }, 'GET', POD],
    ['a user by a group', { userGroups: ['dev'] }, 'GET', POD],
    ['a verb', { verbs: ['get', 'list'] }, 'GET', POD],
    ['a namespace', { namespaces: ['a'] }, 'GET', POD],
    ['requests without a namespace by the namespace ""', { namespaces: [''] }, 'GET', '/api/v1/nodes/n'],
    ['a resource', core(['pods']), 'GET', POD],
    ['all resources of an API group', { resources: [{ group: 'apps' }] }, 'GET', SCALE],
    ['a resource of any API group', { resources: [{ group: '*', resources: ['deployments/scale'] }] }, 'GET', SCALE],
    ['a subresource', core(['pods/log']), 'GET', LOG],
    ['every subresource of a resource', core(['pods/*']), 'GET', LOG],
    ['the resource itself by a pattern for its subresources', core(['pods/*']), 'GET', POD],
    ['a subresource of every resource', { resources: [{ group: '*', resources: ['*/scale'] }] }, 'GET', SCALE],
    ['every resource', core(['*']), 'GET', LOG],
    ['an object by name', core(['pods'], ['web']), 'GET', POD],
    ['a non-resource path', { nonResourceURLs: ['/healthz'] }, 'GET', '/healthz'],
    ['a prefix of non-resource paths', { nonResourceURLs: ['/healthz*'] }, 'GET', '/healthz/etcd'],
    ['every non-resource path', { nonResourceURLs: ['*'] }, 'GET', '/version'],
  ]
  for (const [what, rule, method, path] of matching) {
    it(`matches ${what}`, () => assert.equal(levelOf(rule, method, path), 'Request'))
  }

  const passing: readonly (readonly [string, Omit<PolicyRule, 'level'>, string, string])[] = [
    ['another user', { users: ['joe'] }, 'GET', POD],
    ['a user in other groups', { userGroups: ['ops'] }, 'GET', POD],
    ['another verb', { verbs: ['list'] }, 'GET', POD],
    ['another namespace', { namespaces: ['b'] }, 'GET', POD],
    ['non-resource paths with a rule for namespaces', { namespaces: [''] }, 'GET', '/version'],
    ['a resource of another API group', { resources: [{ group: 'apps' }] }, 'GET', POD],
    ['a subresource with a rule for the resource', core(['pods']), 'GET', LOG],
    ['the resource with a rule for a subresource', core(['*/log']), 'GET', POD],
    ['an object with another name', core(['pods'], ['db']), 'GET', POD],
    ['another non-resource path', { nonResourceURLs: ['/healthz'] }, 'GET', '/healthz/etcd'],
    ['resources with a rule for paths', { nonResourceURLs: ['*'] }, 'GET', POD],
  ]
  for (const [what, rule, method, path] of passing) {
    it(`does not match ${what}`, () => assert.equal(levelOf(rule, method, path), 'None'))
  }

  it('does not match a request without a user if it lists users', () => {
    const evaluate = createPolicyEvaluator({ rules: [{ level: 'Request', users: [''] }] })
    assert.equal(evaluate(undefined, requestInfoOf('GET', POD, undefined)).level, 'None')
  })

  it('applies if it is the first match, and adds its omitted stages to those of the policy', () => {
    const evaluate = createPolicyEvaluator({
      omitStages: ['RequestReceived'],
      omitManagedFields: true,
      rules: [
        { level: 'None', verbs: ['watch'] },
        { level: 'Metadata', omitStages: ['Panic'], omitManagedFields: false },
        { level: 'RequestResponse' },
      ],
    })
    const { level, omitStages, omitManagedFields } = evaluate(jane, requestInfoOf('GET', POD, undefined))
    assert.deepEqual([level, [...omitStages], omitManagedFields], ['Metadata', ['RequestReceived', 'Panic'], false])
  })
})
