/**
 * Tests ServiceAccounts, their tokens, the root CA of every namespace and aggregated roles, on a complete API server
 * with a virtual clock.
 */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { ConfigMaps, Namespaces, Secrets, ServiceAccounts } from '#apis/core/v1.ts'
import { ClusterRoles } from '#apis/rbac/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { clusterRoleAggregationController } from '#controllers/identity/clusterrole-aggregation.ts'
import { rootCaCertificatePublisherController } from '#controllers/identity/root-ca-certificate-publisher.ts'
import { serviceAccountTokenController } from '#controllers/identity/serviceaccount-token.ts'
import { serviceAccountController } from '#controllers/identity/serviceaccount.ts'
import { controllerSettings } from '#controllers/settings.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { readUnverified } from '#lib/jwt/token.ts'
import { createKey, keyToPem } from '#lib/x509/key.ts'
import { isNotFound } from '#meta/status.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient
const namespace = 'accounts'
const files: Readonly<Record<string, string>> = { key: keyToPem(createKey('rsa-2048')), bundle: 'BUNDLE\n' }

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock })
  const all = [
    serviceAccountController,
    serviceAccountTokenController,
    rootCaCertificatePublisherController,
    clusterRoleAggregationController,
  ]
  const settings = controllerSettings({ 'root-ca-file': 'bundle', 'service-account-private-key-file': 'key' })
  controllers = startControllers(plane, clock, all, {
    settings,
    readFile: (path) => Promise.resolve(files[path] ?? ''),
  })
  client = controllers.client
  await client.create(Namespaces, { metadata: { name: namespace } })
  await clock.advance(1000)
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

const text = (value: string | undefined): string => Buffer.from(value ?? '', 'base64').toString()

describe('service account controllers', () => {
  it('create the account default in every namespace, and recreate it', async () => {
    await client.delete(ServiceAccounts, { namespace, name: 'default' })
    await clock.advance(1000)
    const account = await client.get(ServiceAccounts, { namespace, name: 'default' })
    assert.equal(account.secrets, undefined)
  })

  it('add tokens to Secrets that name an account', async () => {
    const account = await client.create(ServiceAccounts, { metadata: { namespace, name: 'robot' } })
    const annotations = { 'kubernetes.io/service-account.name': 'robot' }
    const metadata = { namespace, name: 'robot-token', annotations }
    await client.create(Secrets, { metadata, type: 'kubernetes.io/service-account-token' })
    await clock.advance(1000)
    const { metadata: filled, data = {} } = await client.get(Secrets, { namespace, name: 'robot-token' })
    assert.equal(filled.annotations?.['kubernetes.io/service-account.uid'], account.metadata.uid)
    assert.equal(text(data['ca.crt']), 'BUNDLE\n')
    assert.equal(text(data['namespace']), namespace)
    const { header, claims } = readUnverified(text(data['token']))
    assert.equal(header.alg, 'RS256')
    assert.deepEqual(claims, {
      iss: 'kubernetes/serviceaccount',
      'kubernetes.io/serviceaccount/namespace': namespace,
      'kubernetes.io/serviceaccount/secret.name': 'robot-token',
      'kubernetes.io/serviceaccount/service-account.name': 'robot',
      'kubernetes.io/serviceaccount/service-account.uid': account.metadata.uid,
      sub: `system:serviceaccount:${namespace}:robot`,
    })
  })

  it('delete tokens with their account, and references to deleted Secrets', async () => {
    const secrets = [{ name: 'robot-token' }, { name: 'other' }]
    await client.create(ServiceAccounts, { metadata: { namespace, name: 'robot' }, secrets })
    const annotations = { 'kubernetes.io/service-account.name': 'robot' }
    for (const name of ['robot-token', 'second']) {
      await client.create(Secrets, {
        metadata: { namespace, name, annotations },
        type: 'kubernetes.io/service-account-token',
      })
    }
    await clock.advance(1000)
    await client.delete(Secrets, { namespace, name: 'robot-token' })
    await clock.advance(1000)
    const account = await client.get(ServiceAccounts, { namespace, name: 'robot' })
    assert.deepEqual(account.secrets, [{ name: 'other' }])
    await client.delete(ServiceAccounts, { namespace, name: 'robot' })
    await clock.advance(1000)
    await assert.rejects(client.get(Secrets, { namespace, name: 'second' }), isNotFound)
  })
})

describe('root CA publisher', () => {
  it('creates kube-root-ca.crt in every namespace, and reverts foreign changes', async () => {
    const where = { namespace, name: 'kube-root-ca.crt' }
    await client.patch(ConfigMaps, where, {
      type: 'merge',
      value: { data: { 'ca.crt': 'mine', more: 'x' }, metadata: { annotations: null } },
    })
    await clock.advance(1000)
    const { data, metadata } = await client.get(ConfigMaps, where)
    assert.deepEqual(data, { 'ca.crt': 'BUNDLE\n' })
    assert.deepEqual(metadata.annotations, {
      'kubernetes.io/description':
        'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.',
    })
  })
})

describe('root CA publisher without a CA bundle', () => {
  it('creates an empty kube-root-ca.crt', async () => {
    await controllers.stop()
    const only = startControllers(plane, clock, [rootCaCertificatePublisherController])
    try {
      await client.create(Namespaces, { metadata: { name: 'without' } })
      await clock.advance(1000)
      const { data } = await client.get(ConfigMaps, { namespace: 'without', name: 'kube-root-ca.crt' })
      assert.deepEqual(data, { 'ca.crt': '' })
    } finally {
      await only.stop()
    }
  })
})

describe('ClusterRole aggregation controller', () => {
  it("sets the union of the selected roles' rules by name, and removes them again", async () => {
    const rule = (resource: string): { verbs: string[]; apiGroups: string[]; resources: string[] } => ({
      verbs: ['get'],
      apiGroups: [''],
      resources: [resource],
    })
    const labels = { part: 'yes' }
    await client.create(ClusterRoles, { metadata: { name: 'b', labels }, rules: [rule('pods'), rule('nodes')] })
    await client.create(ClusterRoles, { metadata: { name: 'a', labels }, rules: [rule('secrets'), rule('pods')] })
    const aggregationRule = { clusterRoleSelectors: [{ matchLabels: labels }] }
    await client.create(ClusterRoles, { metadata: { name: 'whole' }, aggregationRule, rules: [] })
    await clock.advance(1000)
    const whole = await client.get(ClusterRoles, { name: 'whole' })
    assert.deepEqual(whole.rules, [rule('secrets'), rule('pods'), rule('nodes')])
    const managers = whole.metadata.managedFields?.map(({ manager, operation }) => `${manager} ${operation}`)
    assert.ok(managers?.includes('clusterrole-aggregation-controller Apply'))
    for (const name of ['a', 'b']) await client.delete(ClusterRoles, { name })
    await clock.advance(1000)
    assert.equal((await client.get(ClusterRoles, { name: 'whole' })).rules, null)
  })
})
