import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PolicyRule, RoleRef, Subject } from '#apis/rbac/v1.ts'
import { createSeededRandom, type Random } from '#lib/random.ts'

import { type Access, pathAccess, resourceAccess } from '../../authorizer.ts'
import type { User } from '../../user.ts'
import { RbacIndex } from './rbac.ts'

interface World {
  readonly roles: Map<string, PolicyRule[]>
  readonly bindings: Map<string, { namespace: string; roleRef: RoleRef; subjects: Subject[] }>
}

/** A slow reference model: the documented rules, evaluated one by one, without the index. */
function naive({ roles, bindings }: World, user: User, access: Access): boolean {
  for (const { namespace, roleRef, subjects } of bindings.values()) {
    if (namespace !== '' && namespace !== access.namespace) continue
    if (!subjects.some((subject) => isSubject(subject, user, namespace))) continue
    const rules = roles.get(roleRef.kind === 'ClusterRole' ? `/${roleRef.name}` : `${namespace}/${roleRef.name}`) ?? []
    if (rules.some((rule) => ruleAllows(rule, access))) return true
  }
  return false
}

function isSubject({ kind, name, namespace = '' }: Subject, user: User, home: string): boolean {
  if (kind === 'User') return user.name === name
  if (kind === 'Group') return user.groups.includes(name)
  const where = namespace || home
  return where !== '' && user.name === `system:serviceaccount:${where}:${name}`
}

function ruleAllows(rule: PolicyRule, access: Access): boolean {
  const { apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule
  if (!rule.verbs.some((verb) => verb === '*' || verb === access.verb)) return false
  if (!access.isResource) {
    return nonResourceURLs.some(
      (url) => url === access.path || (url.endsWith('*') && access.path.startsWith(url.slice(0, -1))),
    )
  }
  const whole = access.subresource === '' ? access.resource : `${access.resource}/${access.subresource}`
  return (
    apiGroups.some((group) => group === '*' || group === access.group) &&
    resources.some(
      (one) => one === '*' || one === whole || (access.subresource !== '' && one === `*/${access.subresource}`),
    ) &&
    (resourceNames.length === 0 || resourceNames.includes(access.name))
  )
}

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'impersonate', '*']
const GROUPS = ['', 'apps', 'batch', '*']
const RESOURCES = ['pods', 'pods/log', 'deployments', 'deployments/scale', '*/scale', '*/log', '*', 'pods/*', 'secrets']
const NAMES = ['a', 'b', 'web', '']
const URLS = ['*', '/healthz', '/healthz/*', '/api*', '/', '/version']
const NAMESPACES = ['n1', 'n2', 'n3']
const USERS = ['jane', 'joe', 'system:serviceaccount:n1:sa', 'system:serviceaccount:n2:sa']
const USER_GROUPS = ['dev', 'ops', 'system:authenticated', 'system:serviceaccounts:n1']

function createDraw(random: Random) {
  const one = <T>(list: readonly T[]): T => list[random.int(list.length)] as T
  const some = <T>(list: readonly T[], most: number): T[] =>
    Array.from({ length: random.int(most) + 1 }, () => one(list))
  const rule = (): PolicyRule =>
    random.float() < 0.2
      ? { verbs: some(VERBS, 2), nonResourceURLs: some(URLS, 2) }
      : {
          verbs: some(VERBS, 3),
          apiGroups: some(GROUPS, 2),
          resources: some(RESOURCES, 3),
          ...(random.float() < 0.3 ? { resourceNames: some(NAMES, 2) } : {}),
        }
  const subject = (): Subject => {
    const kind = one(['User', 'Group', 'ServiceAccount'])
    if (kind === 'User') return { kind, name: one(USERS) }
    if (kind === 'Group') return { kind, name: one(USER_GROUPS) }
    return { kind, name: 'sa', ...(random.float() < 0.7 ? { namespace: one(NAMESPACES) } : {}) }
  }
  const user = (): User => ({ name: one(USERS), uid: '', groups: some(USER_GROUPS, 3), extra: {} })
  const access = (): Access => {
    if (random.float() < 0.15)
      return pathAccess(one(VERBS), one(['/healthz', '/healthz/etcd', '/api/x', '/version', '/']))
    const [resource = '', subresource = ''] = one(['pods', 'pods/log', 'deployments/scale', 'secrets', 'x/y']).split(
      '/',
    )
    const place = { namespace: one([...NAMESPACES, '']), group: one(GROUPS), name: one(NAMES) }
    return resourceAccess({ verb: one(VERBS), resource, subresource, ...place })
  }
  return { one, some, rule, subject, user, access, random }
}

type Draw = ReturnType<typeof createDraw>

/** Changes one role or binding in the index and in the reference model. */
function change(draw: Draw, world: World, index: RbacIndex): void {
  const namespace = draw.one([...NAMESPACES, ''])
  const name = draw.one(['r1', 'r2', 'r3'])
  const metadata = { name, ...(namespace === '' ? {} : { namespace }) }
  const key = `${namespace}/${name}`
  const removes = draw.random.float() < 0.12
  if (draw.random.float() < 0.5) {
    const rules = Array.from({ length: draw.random.int(8) }, draw.rule)
    if (removes) {
      world.roles.delete(key)
      if (namespace === '') index.removeClusterRole(name)
      else index.removeRole(namespace, name)
    } else {
      world.roles.set(key, rules)
      if (namespace === '') index.setClusterRole({ metadata, rules })
      else index.setRole({ metadata, rules })
    }
    return
  }
  const kind = namespace === '' ? 'ClusterRole' : draw.one(['Role', 'ClusterRole'])
  const roleRef: RoleRef = {
    apiGroup: 'rbac.authorization.k8s.io',
    kind,
    name: draw.one(['r1', 'r2', 'r3', 'r3', 'gone']),
  }
  const subjects = draw.some([0, 1, 2], 3).map(() => draw.subject())
  if (removes) {
    world.bindings.delete(key)
    index.removeBinding(namespace, name)
  } else {
    world.bindings.set(key, { namespace, roleRef, subjects })
    index.setBinding({ metadata, roleRef, subjects })
  }
}

const jane: User = { name: 'jane', uid: '', groups: ['dev', 'system:authenticated'], extra: {} }
const clusterRole = (name: string): RoleRef => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name })

describe('RbacAuthorizer', () => {
  it('agrees with a simple model while roles and bindings change', () => {
    const draw = createDraw(createSeededRandom(7))
    const world: World = { roles: new Map(), bindings: new Map() }
    const index = new RbacIndex()
    let allowed = 0
    for (let round = 0; round < 400; round++) {
      change(draw, world, index)
      for (let checks = 0; checks < 50; checks++) {
        const [user, access] = [draw.user(), draw.access()]
        const expected = naive(world, user, access)
        if (expected) allowed++
        assert.equal(index.authorize(user, access).allowed, expected, JSON.stringify([user, access]))
      }
    }
    // A test that never sees an allowed request proves little.
    assert.ok(allowed > 3000 && allowed < 17_000, `${allowed} of 20000 were allowed`)
  })

  it("lists exactly the rules that allow a user's requests", () => {
    const draw = createDraw(createSeededRandom(11))
    const world: World = { roles: new Map(), bindings: new Map() }
    const index = new RbacIndex()
    for (let round = 0; round < 300; round++) {
      change(draw, world, index)
      const [user, access] = [draw.user(), draw.access()]
      const { rules } = index.resolve(user, access.isResource ? access.namespace : '')
      assert.equal(
        rules.some((rule) => ruleAllows(rule, access)),
        index.authorize(user, access).allowed,
      )
    }
  })

  it('names the binding that allowed a request in the reason', () => {
    const index = new RbacIndex()
    const rules = [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }]
    index.setClusterRole({ metadata: { name: 'reader' }, rules })
    index.setBinding({
      metadata: { name: 'all' },
      roleRef: clusterRole('reader'),
      subjects: [{ kind: 'Group', name: 'ops' }],
    })
    const subjects = [{ kind: 'ServiceAccount', name: 'bot' }]
    index.setBinding({ metadata: { name: 'local', namespace: 'n1' }, roleRef: clusterRole('reader'), subjects })
    const access = resourceAccess({ verb: 'get', resource: 'pods', namespace: 'n1' })
    assert.equal(
      index.authorize({ ...jane, groups: ['ops'] }, access).reason,
      'RBAC: allowed by ClusterRoleBinding "all" of ClusterRole "reader" to Group "ops"',
    )
    assert.equal(
      index.authorize({ ...jane, name: 'system:serviceaccount:n1:bot' }, access).reason,
      'RBAC: allowed by RoleBinding "local/n1" of ClusterRole "reader" to ServiceAccount "bot/n1"',
    )
  })

  it('names roles that are bound but do not exist in the reason', () => {
    const index = new RbacIndex()
    const subjects = [{ kind: 'User', name: 'jane' }]
    index.setBinding({ metadata: { name: 'b' }, roleRef: clusterRole('gone'), subjects })
    const access = resourceAccess({ verb: 'get', resource: 'pods', namespace: 'n1' })
    assert.equal(index.authorize(jane, access).reason, 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found')
    const roleRef = { apiGroup: '', kind: 'Role', name: 'away' }
    index.setBinding({ metadata: { name: 'b', namespace: 'n1' }, roleRef, subjects })
    assert.equal(
      index.authorize(jane, access).reason,
      'RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, role.rbac.authorization.k8s.io "away" not found]',
    )
    const { error } = index.rulesFor(jane, 'n1')
    assert.match(error ?? '', /^\[clusterrole.*"gone".*, role.*"away" not found\]$/)
  })

  it('grants permissions of a RoleBinding only in its namespace', () => {
    const index = new RbacIndex()
    index.setRole({
      metadata: { name: 'r', namespace: 'n1' },
      rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
    })
    const roleRef = { apiGroup: '', kind: 'Role', name: 'r' }
    index.setBinding({ metadata: { name: 'b', namespace: 'n1' }, roleRef, subjects: [{ kind: 'User', name: 'jane' }] })
    const may = (namespace: string): boolean =>
      index.authorize(jane, resourceAccess({ verb: 'get', resource: 'pods', namespace })).allowed
    assert.deepEqual(['n1', 'n2', ''].map(may), [true, false, false])
    assert.equal(index.authorize(jane, pathAccess('get', '/metrics')).allowed, false)
  })

  it('handles names that objects inherit from their prototype, such as "constructor"', () => {
    const index = new RbacIndex()
    const odd: User = { name: '__proto__', uid: '', groups: ['constructor'], extra: {} }
    const access = resourceAccess({
      verb: 'toString',
      group: '__proto__',
      resource: 'hasOwnProperty',
      namespace: 'constructor',
    })
    assert.equal(index.authorize(odd, access).allowed, false)
  })
})
