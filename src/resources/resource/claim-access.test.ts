import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Authorizer } from '#auth/authorizer.ts'
import type { User } from '#auth/user.ts'

import { tryRules } from '../rules.fixture.ts'
import { defineResourceClaim } from './resourceclaim.ts'

const request = { name: 'r', exactly: { deviceClassName: 'c' } }
const pending = { metadata: { name: 'x', namespace: 'n' }, spec: { devices: { requests: [request] } } }
const onNode = (...names: string[]): object => ({
  nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: names }] }],
})
const allocation = {
  devices: {
    results: ['a.io', 'b.io'].map((driver) => ({ request: 'r', driver, pool: 'p', device: 'd' })),
  },
  nodeSelector: onNode('n1'),
}
const report = (driver: string, data: object = {}): object => ({ driver, pool: 'p', device: 'd', data })
const withStatus = (status: object): object => ({ ...pending, status })
const allocated = withStatus({ allocation })

interface Trial {
  readonly verb?: string
  readonly user?: User
  /** The allowed calls, as `verb subresource namespace/name`. */
  readonly allowed?: readonly string[]
  readonly off?: readonly string[]
}

const JANE: User = { name: 'jane', uid: '', groups: [], extra: {} }
const pod = (node: string): User => ({
  name: 'system:serviceaccount:n:driver',
  uid: '',
  groups: [],
  extra: { 'authentication.kubernetes.io/node-name': [node] },
})

async function change(
  from: object,
  to: object,
  trial: Trial = {},
): Promise<{ errors: readonly string[]; calls: string[] }> {
  const { verb = 'update', user = JANE, allowed = [], off = [] } = trial
  const calls: string[] = []
  const ask: Authorizer['authorize'] = (_user, access) => {
    assert.deepEqual([access.group, access.resource], ['resource.k8s.io', 'resourceclaims'])
    const what = `${access.verb} ${access.subresource} ${access.namespace}/${access.name}`
    calls.push(what)
    return { allowed: allowed.includes(what), denied: false, reason: '' }
  }
  const { update } = tryRules(defineResourceClaim(ask), { off, context: { verb, user } })
  const { errors } = await update(to, from, 'status')
  return { errors, calls }
}

const BINDING =
  'status.allocation: Forbidden: changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="update" permission: resourceclaims.resource.k8s.io is forbidden: User "jane" cannot update resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope'

test("a change of a ResourceClaim's allocation or reservations requires the binding permission", async () => {
  const reserved = withStatus({ allocation, reservedFor: [{ resource: 'pods', name: 'p', uid: 'u' }] })
  for (const [from, to] of [
    [pending, allocated],
    [allocated, pending],
    [allocated, reserved],
  ] as const) {
    assert.deepEqual(await change(from, to), { errors: [BINDING], calls: ['update binding /'] })
    assert.deepEqual((await change(from, to, { allowed: ['update binding /'] })).errors, [])
    const patched = await change(from, to, { verb: 'patch', allowed: ['update binding /'] })
    assert.match(patched.errors.join(), /verb="patch" permission: .* cannot patch resource "resourceclaims\/binding"/)
  }
})

test('a change of device status in a ResourceClaim requires permission for each driver', async () => {
  const both = withStatus({ allocation, devices: [report('b.io'), report('a.io')] })
  const { errors, calls } = await change(allocated, both)
  assert.deepEqual(calls, ['arbitrary-node:update driver n/a.io', 'arbitrary-node:update driver n/b.io'])
  assert.deepEqual(
    errors,
    ['a.io', 'b.io'].map(
      (driver) =>
        `status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[arbitrary-node:update]" permission: resourceclaims.resource.k8s.io "${driver}" is forbidden: User "jane" cannot arbitrary-node:update resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "n"`,
    ),
  )
  const one = withStatus({ allocation, devices: [report('a.io', { x: 1 }), report('b.io')] })
  assert.deepEqual((await change(both, one)).calls, ['arbitrary-node:update driver n/a.io'])
  assert.deepEqual((await change(both, allocated)).calls.length, 2)
  assert.deepEqual(await change(both, both), { errors: [], calls: [] })
  assert.deepEqual((await change(allocated, both, { allowed: calls })).errors, [])
})

test('a driver on the node of a ResourceClaim needs only the associated-node permission', async () => {
  const reported = withStatus({ allocation, devices: [report('a.io')] })
  const near = 'associated-node:update driver n/a.io'
  const far = 'arbitrary-node:update driver n/a.io'
  const denied = await change(allocated, reported, { user: pod('n1') })
  assert.deepEqual(denied.calls, [near, far])
  assert.match(
    denied.errors.join(),
    /verb="\[associated-node:update arbitrary-node:update\]" permission: .* cannot associated-node:update /,
  )
  assert.deepEqual(await change(allocated, reported, { user: pod('n1'), allowed: [near] }), {
    errors: [],
    calls: [near],
  })
  assert.deepEqual((await change(allocated, reported, { user: pod('n1'), allowed: [far] })).errors, [])
  const elsewhere = [pod('n2'), { ...pod('n1'), name: 'jane' }, { ...pod('n1'), extra: {} }]
  for (const user of elsewhere) assert.deepEqual((await change(allocated, reported, { user })).calls, [far])
  const { nodeSelector: _, ...anywhere } = allocation
  for (const given of [{ ...anywhere, nodeSelector: onNode('n1', 'n2') }, anywhere]) {
    const after = withStatus({ allocation: given, devices: [report('a.io')] })
    assert.deepEqual((await change(withStatus({ allocation: given }), after, { user: pod('n1') })).calls, [far])
  }
})

test('device status of deallocated devices in a ResourceClaim may be removed without permission', async () => {
  const reported = withStatus({ allocation, devices: [report('a.io')] })
  assert.deepEqual((await change(reported, pending)).calls, ['update binding /'])
})

test('a ResourceClaim is written without a permission check if the feature gate is off or the status does not change', async () => {
  const off = ['DRAResourceClaimGranularStatusAuthorization']
  assert.deepEqual(await change(pending, allocated, { off }), { errors: [], calls: [] })
})
