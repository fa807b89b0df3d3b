/** Tests the page "Who may do what": against the authorizer of the API server, and in a real browser. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import * as fc from 'fast-check'
import type { Page } from 'playwright-core'

import { SubjectAccessReviews } from '#apis/authorization/v1.ts'
import { Namespaces, ServiceAccounts } from '#apis/core/v1.ts'
import {
  type ClusterRole,
  ClusterRoleBindings,
  ClusterRoles,
  type PolicyRule,
  RoleBindings,
  Roles,
  type Subject,
} from '#apis/rbac/v1.ts'
import { pathAccess, resourceAccess } from '#auth/authorizer.ts'
import { RbacIndex } from '#auth/authorizers/rbac/rbac.ts'
import { eventually } from '#kits/lib/eventually.ts'

import {
  allGrants,
  allows,
  grantsTo,
  type Holder,
  identityOf,
  type RbacObjects,
} from '../../../src/console/rights/rbac.ts'
import { type BrowserBed, startBrowserBed, whyNoBrowser } from './browser-bed.ts'

const API_GROUP = 'rbac.authorization.k8s.io'
const of = (...values: readonly string[]): fc.Arbitrary<string> => fc.constantFrom(...values)
const some = (...values: readonly string[]): fc.Arbitrary<string[]> => fc.subarray([...values], { minLength: 1 })

const rules: fc.Arbitrary<PolicyRule> = fc.oneof(
  fc.record({
    verbs: some('get', 'list', '*'),
    apiGroups: some('', 'apps', '*'),
    resources: some('pods', 'pods/log', '*/log', '*'),
    resourceNames: fc.subarray(['x', 'y']),
  }),
  fc.record({ verbs: some('get', '*'), nonResourceURLs: some('/a', '/a/*', '*') }),
)
const subjects: fc.Arbitrary<Subject> = fc.oneof(
  fc.record({ kind: of('User'), name: of('jane', 'system:serviceaccount:n1:bot') }),
  fc.record({ kind: of('Group'), name: of('devs', 'system:authenticated', 'system:serviceaccounts:n1') }),
  fc.record({ kind: of('ServiceAccount'), name: of('bot'), namespace: of('', 'n1', 'n2') }),
)
const namespaces = of('n1', 'n2')
const roleName = of('one', 'two', 'gone')
const refs = fc.record({ apiGroup: fc.constant(API_GROUP), kind: of('Role', 'ClusterRole'), name: roleName })
const metadata = fc.record({ name: of('one', 'two') })
const inNamespace = fc.record({ name: of('one', 'two'), namespace: namespaces })
const worlds: fc.Arbitrary<RbacObjects> = fc.record({
  clusterRoles: fc.array(
    fc.record({ metadata, rules: fc.array(rules, { maxLength: 2 }) }) as fc.Arbitrary<ClusterRole>,
  ),
  roles: fc.array(fc.record({ metadata: inNamespace, rules: fc.array(rules, { maxLength: 2 }) })),
  clusterRoleBindings: fc.uniqueArray(
    fc.record({
      metadata,
      roleRef: refs.map((ref) => ({ ...ref, kind: 'ClusterRole' })),
      subjects: fc.array(subjects, { maxLength: 3 }),
    }),
    { selector: (one) => one.metadata.name },
  ),
  roleBindings: fc.uniqueArray(
    fc.record({ metadata: inNamespace, roleRef: refs, subjects: fc.array(subjects, { maxLength: 3 }) }),
    { selector: (one) => `${one.metadata.namespace}/${one.metadata.name}` },
  ),
})

const HOLDERS: readonly Holder[] = [
  { kind: 'User', name: 'jane' },
  { kind: 'User', name: 'system:serviceaccount:n1:bot' },
  { kind: 'ServiceAccount', name: 'bot', namespace: 'n2' },
]
const ACCESSES = [
  ...['get', 'delete'].flatMap((verb) =>
    ['', 'log'].flatMap((subresource) =>
      ['', 'x'].flatMap((name) =>
        ['', 'n1'].map((namespace) =>
          resourceAccess({ verb, group: 'apps', version: 'v1', resource: 'pods', subresource, name, namespace }),
        ),
      ),
    ),
  ),
  pathAccess('get', '/a/b'),
  pathAccess('put', '/a'),
]

describe('the search for rights', () => {
  it('decides as the RBAC authorizer', () => {
    fc.assert(
      fc.property(worlds, fc.subarray(['devs']), (world, groups) => {
        const index = new RbacIndex()
        for (const role of world.clusterRoles) index.setClusterRole(role)
        for (const role of world.roles) index.setRole(role)
        for (const binding of [...world.clusterRoleBindings, ...world.roleBindings]) index.setBinding(binding)
        const grants = allGrants(world)
        for (const holder of HOLDERS) {
          const identity = identityOf(holder, groups)
          const own = grantsTo(grants, identity)
          const who = { name: identity.user ?? '', uid: '', groups: [...identity.groups], extra: {} }
          for (const access of ACCESSES) {
            const holds = (namespace: string): boolean => namespace === '' || namespace === access.namespace
            const found = own.some((grant) => holds(grant.namespace) && allows(grant, access))
            assert.equal(found, index.authorize(who, access).allowed, JSON.stringify({ holder, access }))
          }
        }
      }),
    )
  })
})

describe('who may do what in the console', { skip: whyNoBrowser }, () => {
  let bed: BrowserBed
  before(async () => {
    bed = await startBrowserBed()
    const { client } = bed.cluster
    await client.create(Namespaces, { metadata: { name: 'shop' } })
    await client.create(ServiceAccounts, { metadata: { name: 'bot', namespace: 'shop' } })
    await client.create(Roles, {
      metadata: { name: 'readers', namespace: 'shop' },
      rules: [{ verbs: ['get'], apiGroups: [''], resources: ['secrets'], resourceNames: ['one'] }],
    })
    await client.create(RoleBindings, {
      metadata: { name: 'readers', namespace: 'shop' },
      roleRef: { apiGroup: API_GROUP, kind: 'Role', name: 'readers' },
      subjects: [
        { kind: 'ServiceAccount', name: 'bot', namespace: 'shop' },
        { apiGroup: API_GROUP, kind: 'User', name: '<b>jane</b>' },
      ],
    })
    await client.create(RoleBindings, {
      metadata: { name: 'editors', namespace: 'shop' },
      roleRef: { apiGroup: API_GROUP, kind: 'ClusterRole', name: 'edit' },
      subjects: [{ apiGroup: API_GROUP, kind: 'Group', name: 'devs' }],
    })
  })
  after(() => bed?.[Symbol.asyncDispose]())

  const checkThemes = async (): Promise<void> => {
    for (const theme of ['light', 'dark'] as const) assert.deepEqual(await bed.violations(theme), [])
  }
  const subjectsOf = (page: Page): Promise<readonly string[]> =>
    page.getByRole('region', { name: 'Subjects' }).locator('tbody tr td:nth-child(2)').allTextContents()

  it('agrees with SubjectAccessReviews of the API server', async () => {
    const { client } = bed.cluster
    const grants = allGrants({
      clusterRoles: (await client.list(ClusterRoles)).items,
      roles: (await client.list(Roles)).items,
      clusterRoleBindings: (await client.list(ClusterRoleBindings)).items,
      roleBindings: (await client.list(RoleBindings)).items,
    })
    const holders: readonly (readonly [Holder, readonly string[]])[] = [
      [{ kind: 'ServiceAccount', name: 'bot', namespace: 'shop' }, []],
      [{ kind: 'User', name: '<b>jane</b>' }, []],
      [{ kind: 'User', name: 'joe' }, ['devs']],
      [{ kind: 'User', name: 'system:kube-scheduler' }, []],
      [{ kind: 'ServiceAccount', name: 'namespace-controller', namespace: 'kube-system' }, []],
    ]
    const targets = [
      ['get', '', 'secrets', 'shop', 'one'],
      ['get', '', 'secrets', 'shop', 'two'],
      ['list', '', 'secrets', 'shop', ''],
      ['get', '', 'secrets', 'default', 'one'],
      ['patch', 'apps', 'deployments', 'shop', 'web'],
      ['create', '', 'pods', 'shop', ''],
      ['delete', '', 'namespaces', '', 'shop'],
      ['list', '', 'nodes', '', ''],
      ['create', 'authorization.k8s.io', 'selfsubjectaccessreviews', '', ''],
    ] as const
    let allowedCount = 0
    for (const [holder, groups] of holders) {
      const identity = identityOf(holder, groups)
      for (const [verb, group, resource, namespace, name] of targets) {
        const access = resourceAccess({ verb, group, version: 'v1', resource, subresource: '', namespace, name })
        const found = grantsTo(grants, identity).some(
          (grant) => (grant.namespace === '' || grant.namespace === namespace) && allows(grant, access),
        )
        const resourceAttributes = { verb, group, version: 'v1', resource, namespace, name }
        const spec = { user: identity.user ?? '', groups: [...identity.groups], resourceAttributes }
        const { status } = await client.create(SubjectAccessReviews, { metadata: {}, spec })
        assert.equal(found, status?.allowed, JSON.stringify({ holder, resourceAttributes }))
        if (found) allowedCount++
      }
    }
    assert.ok(allowedCount > 10, `${allowedCount}`)
  })

  it('names who may, with binding and role', async () => {
    const { page } = bed
    await bed.open('')
    await page.getByRole('link', { name: 'Who may do what' }).click()
    await page.getByText('Choose a verb and a kind').waitFor()
    await page.getByLabel('Verb').fill('get')
    await page.getByLabel('Kind or path').fill('secrets')
    await page.getByRole('combobox', { name: 'Namespace', exact: true }).selectOption('shop')
    const without = await eventually(
      () => subjectsOf(page),
      (found) => found.includes('devs') && found.includes('system:masters'),
    )
    assert.ok(!without.includes('shop/bot'))
    await page.getByLabel('Name (empty: all)').fill('one')
    await page.getByRole('link', { name: 'shop/bot' }).waitFor()
    await page.getByRole('row').filter({ hasText: 'shop/bot' }).getByText('Role readers', { exact: true }).waitFor()
    await page.getByText('<b>jane</b>').waitFor()
    await checkThemes()
    await page.reload()
    await page.getByRole('link', { name: 'shop/bot' }).click()
    await page.getByText('get secrets named one').waitFor()
    await checkThemes()
  })

  it('says what a group may, and follows changes', async () => {
    const { page, cluster } = bed
    await bed.open('/rights?part=subject')
    await page.getByText('Choose a subject').waitFor()
    await page.getByRole('combobox', { name: 'Kind' }).selectOption('Group')
    await page.getByLabel('Name', { exact: true }).fill('devs')
    await page.getByRole('link', { name: 'ClusterRole edit' }).waitFor()
    await cluster.client.delete(RoleBindings, { namespace: 'shop', name: 'editors' })
    await page.getByText('No binding gives it a role').waitFor()
  })

  it('shows the rules that the API server lists for the user', async () => {
    const { page } = bed
    await bed.open('/rights?part=me&ns=shop')
    await page.getByRole('region', { name: 'Your rules in shop' }).waitFor()
    await checkThemes()
  })

  it('is linked from roles, bindings and service accounts', async () => {
    const { page } = bed
    await bed.open('/core/v1/serviceaccounts/shop/bot')
    await page.getByRole('link', { name: 'What may ServiceAccount shop/bot do?' }).click()
    await page.getByRole('link', { name: 'Role readers' }).click()
    await page.getByRole('link', { name: 'Who may get secrets?' }).click()
    await page.getByRole('link', { name: 'system:masters' }).waitFor()
    await bed.open('/rbac.authorization.k8s.io/v1/rolebindings/shop/readers')
    await page.getByRole('link', { name: 'What may User <b>jane</b> do?' }).click()
    await page.getByText('get secrets named one').waitFor()
  })

  it('shows users without rights what they may, and why not more', async () => {
    const page = await bed.openAs('jane', '/rights')
    await page.getByText('You may not see roles and bindings').waitFor()
    await page.getByText('cannot list resource "clusterroles"').waitFor()
    await page.getByRole('link', { name: 'What may I …' }).click()
    await page.getByRole('cell', { name: 'selfsubjectaccessreviews, selfsubjectrulesreviews' }).waitFor()
    assert.deepEqual(bed.troubles, [])
  })
})
