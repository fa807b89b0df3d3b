import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { User } from '../registry/resource.ts'
import { requestInfoOf } from '../request-info.ts'
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

describe('audit policy', () => {
  const matching: readonly (readonly [string, Omit<PolicyRule, 'level'>, string, string])[] = [
    ['everything when it says nothing', {}, 'GET', POD],
    ['the user', { users: ['joe', 'jane'] }, 'GET', POD],
    ['a group of the user', { userGroups: ['dev'] }, 'GET', POD],
    ['the verb', { verbs: ['get', 'list'] }, 'GET', POD],
    ['the namespace', { namespaces: ['a'] }, 'GET', POD],
    ['no namespace by the empty one', { namespaces: [''] }, 'GET', '/api/v1/nodes/n'],
    ['the resource', core(['pods']), 'GET', POD],
    ['a whole group', { resources: [{ group: 'apps' }] }, 'GET', SCALE],
    ['any group', { resources: [{ group: '*', resources: ['deployments/scale'] }] }, 'GET', SCALE],
    ['a subresource', core(['pods/log']), 'GET', LOG],
    ['every subresource of a resource', core(['pods/*']), 'GET', LOG],
    ['the resource itself by the same', core(['pods/*']), 'GET', POD],
    ['a subresource of every resource', { resources: [{ group: '*', resources: ['*/scale'] }] }, 'GET', SCALE],
    ['every resource', core(['*']), 'GET', LOG],
    ['a name', core(['pods'], ['web']), 'GET', POD],
    ['a path', { nonResourceURLs: ['/healthz'] }, 'GET', '/healthz'],
    ['what a path begins with', { nonResourceURLs: ['/healthz*'] }, 'GET', '/healthz/etcd'],
    ['every path', { nonResourceURLs: ['*'] }, 'GET', '/version'],
  ]
  for (const [what, rule, method, path] of matching) {
    it(`matches ${what}`, () => assert.equal(levelOf(rule, method, path), 'Request'))
  }

  const passing: readonly (readonly [string, Omit<PolicyRule, 'level'>, string, string])[] = [
    ['another user', { users: ['joe'] }, 'GET', POD],
    ['other groups', { userGroups: ['ops'] }, 'GET', POD],
    ['another verb', { verbs: ['list'] }, 'GET', POD],
    ['another namespace', { namespaces: ['b'] }, 'GET', POD],
    ['paths when it is about namespaces', { namespaces: [''] }, 'GET', '/version'],
    ['another group', { resources: [{ group: 'apps' }] }, 'GET', POD],
    ['a subresource when it names the resource', core(['pods']), 'GET', LOG],
    ['the resource when it names a subresource', core(['*/log']), 'GET', POD],
    ['another name', core(['pods'], ['db']), 'GET', POD],
    ['another path', { nonResourceURLs: ['/healthz'] }, 'GET', '/healthz/etcd'],
    ['resources when it is about paths', { nonResourceURLs: ['*'] }, 'GET', POD],
  ]
  for (const [what, rule, method, path] of passing) {
    it(`passes over ${what}`, () => assert.equal(levelOf(rule, method, path), 'None'))
  }

  it('takes nobody for nobody', () => {
    const evaluate = createPolicyEvaluator({ rules: [{ level: 'Request', users: [''] }] })
    assert.equal(evaluate(undefined, requestInfoOf('GET', POD, undefined)).level, 'None')
  })

  it('goes by the first rule that matches, with what is omitted for all', () => {
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
