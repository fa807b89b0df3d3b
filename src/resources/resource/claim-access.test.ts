import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Authorizer } from '#apiserver/authorizers/authorizer.ts'
import type { User } from '#apiserver/registry/resource.ts'

import { judge } from '../rules.fixture.ts'
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
  /** `verb subresource namespace/name` that are allowed. */
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
): Promise<{ errors: readonly string[]; asked: string[] }> {
  const { verb = 'update', user = JANE, allowed = [], off = [] } = trial
  const asked: string[] = []
  const ask: Authorizer['authorize'] = (_user, access) => {
    assert.deepEqual([access.group, access.resource], ['resource.k8s.io', 'resourceclaims'])
    const what = `${access.verb} ${access.subresource} ${access.namespace}/${access.name}`
    asked.push(what)
    return { allowed: allowed.includes(what), denied: false, reason: '' }
  }
  const { update } = judge(defineResourceClaim(ask), { off, context: { verb, user } })
  const { errors } = await update(to, from, 'status')
  return { errors, asked }
}

const BINDING =
  'status.allocation: Forbidden: changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="update" permission: resourceclaims.resource.k8s.io is forbidden: User "jane" cannot update resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope'

test('giving devices away, taking them back and reserving them needs the right to bind, everywhere', async () => {
  const reserved = withStatus({ allocation, reservedFor: [{ resource: 'pods', name: 'p', uid: 'u' }] })
  for (const [from, to] of [
    [pending, allocated],
    [allocated, pending],
    [allocated, reserved],
  ] as const) {
    assert.deepEqual(await change(from, to), { errors: [BINDING], asked: ['update binding /'] })
    assert.deepEqual((await change(from, to, { allowed: ['update binding /'] })).errors, [])
    const patched = await change(from, to, { verb: 'patch', allowed: ['update binding /'] })
    assert.match(patched.errors.join(), /verb="patch" permission: .* cannot patch resource "resourceclaims\/binding"/)
  }
})

test('reporting on devices needs the right to each driver that is reported on', async () => {
  const both = withStatus({ allocation, devices: [report('b.io'), report('a.io')] })
  const { errors, asked } = await change(allocated, both)
  assert.deepEqual(asked, ['arbitrary-node:update driver n/a.io', 'arbitrary-node:update driver n/b.io'])
  assert.deepEqual(
    errors,
    ['a.io', 'b.io'].map(
      (driver) =>
        `status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[arbitrary-node:update]" permission: resourceclaims.resource.k8s.io "${driver}" is forbidden: User "jane" cannot arbitrary-node:update resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "n"`,
    ),
  )
  const one = withStatus({ allocation, devices: [report('a.io', { x: 1 }), report('b.io')] })
  assert.deepEqual((await change(both, one)).asked, ['arbitrary-node:update driver n/a.io'])
  assert.deepEqual((await change(both, allocated)).asked.length, 2)
  assert.deepEqual(await change(both, both), { errors: [], asked: [] })
  assert.deepEqual((await change(allocated, both, { allowed: asked })).errors, [])
})

test('a driver on the node of the claim may have a smaller right', async () => {
  const reported = withStatus({ allocation, devices: [report('a.io')] })
  const near = 'associated-node:update driver n/a.io'
  const far = 'arbitrary-node:update driver n/a.io'
  const denied = await change(allocated, reported, { user: pod('n1') })
  assert.deepEqual(denied.asked, [near, far])
  assert.match(
    denied.errors.join(),
    /verb="\[associated-node:update arbitrary-node:update\]" permission: .* cannot associated-node:update /,
  )
  assert.deepEqual(await change(allocated, reported, { user: pod('n1'), allowed: [near] }), {
    errors: [],
    asked: [near],
  })
  assert.deepEqual((await change(allocated, reported, { user: pod('n1'), allowed: [far] })).errors, [])
  const elsewhere = [pod('n2'), { ...pod('n1'), name: 'jane' }, { ...pod('n1'), extra: {} }]
  for (const user of elsewhere) assert.deepEqual((await change(allocated, reported, { user })).asked, [far])
  const { nodeSelector: _, ...anywhere } = allocation
  for (const given of [{ ...anywhere, nodeSelector: onNode('n1', 'n2') }, anywhere]) {
    const after = withStatus({ allocation: given, devices: [report('a.io')] })
    assert.deepEqual((await change(withStatus({ allocation: given }), after, { user: pod('n1') })).asked, [far])
  }
})

test('what is reported of devices that are taken back goes without anybody being asked', async () => {
  const reported = withStatus({ allocation, devices: [report('a.io')] })
  assert.deepEqual((await change(reported, pending)).asked, ['update binding /'])
})

test('nobody is asked when the gate is off, nor for anything but the status', async () => {
  const off = ['DRAResourceClaimGranularStatusAuthorization']
  assert.deepEqual(await change(pending, allocated, { off }), { errors: [], asked: [] })
})
