/**
 * Tests admission plugins that are off by default, and credentials of webhooks, as flags and the configuration file set
 * them.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

import { CONFIG_MAPS, configMap, type HookedPlane, startHookedPlane } from './hooked-plane.ts'
import { startWebhookServer, type WebhookServer } from './webhook-server.ts'

type Json = Record<string, unknown>

const CONFIG = 'admission.yaml'
const PODS = '/api/v1/namespaces/default/pods'

const admissionConfig = (...plugins: object[]): string =>
  JSON.stringify({ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AdmissionConfiguration', plugins })

const pod = (name: string, more: Json = {}): Json => ({
  metadata: { name },
  spec: { containers: [{ name: 'c', image: 'app:1' }], ...more },
})

describe('kube-apiserver with admission plugins that are off by default', () => {
  let backend: WebhookServer
  let plane: ControlPlane
  before(async () => {
    backend = await startWebhookServer()
    let failures = 2
    backend.on('/review', ({ review }, response) => {
      const spec = JSON.stringify(review['spec'])
      if (spec.includes('flaky') && failures-- > 0) return void response.writeHead(500).end()
      return { ...review, status: { allowed: !spec.includes('bad'), reason: 'bad image' } }
    })
    const kubeconfig = {
      'current-context': 'x',
      contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
      clusters: [
        { name: 'x', cluster: { server: backend.url('/review'), 'certificate-authority-data': backend.caBundle } },
      ],
      users: [{ name: 'x', user: { token: 'secret' } }],
    }
    const toleration = { key: 'dedicated', operator: 'Exists' }
    const plugins = [
      {
        name: 'PodNodeSelector',
        configuration: { podNodeSelectorPluginConfig: { clusterDefaultNodeSelector: 'a=b' } },
      },
      {
        name: 'PodTolerationRestriction',
        configuration: {
          apiVersion: 'podtolerationrestriction.admission.k8s.io/v1alpha1',
          kind: 'Configuration',
          default: [toleration],
          whitelist: [toleration, { key: 'node.kubernetes.io/not-ready', operator: 'Exists' }].concat({
            key: 'node.kubernetes.io/unreachable',
            operator: 'Exists',
          }),
        },
      },
      {
        name: 'ImagePolicyWebhook',
        configuration: { imagePolicy: { kubeConfigFile: 'images.kubeconfig', retryBackoff: 1 } },
      },
    ]
    plane = await startControlPlane({
      files: new Map([
        [CONFIG, admissionConfig(...plugins)],
        ['images.kubeconfig', JSON.stringify(kubeconfig)],
      ]),
      settings: {
        'admission-control-config-file': CONFIG,
        'disable-admission-plugins': ['ServiceAccount'],
        'enable-admission-plugins': [
          'NamespaceAutoProvision',
          'ImagePolicyWebhook',
          'PodNodeSelector',
          'PodTolerationRestriction',
          'OwnerReferencesPermissionEnforcement',
        ],
      },
    })
  })
  after(async () => {
    await plane.stop()
    await backend.close()
  })

  it('creates a namespace for its first object', async () => {
    assert.equal((await plane.request('GET', '/api/v1/namespaces/fresh')).status, 404)
    const created = await plane.request('POST', '/api/v1/namespaces/fresh/configmaps', configMap('a'))
    assert.equal(created.status, 201)
    assert.equal((await plane.request('GET', '/api/v1/namespaces/fresh')).status, 200)
  })

  it('adds the node selector and the tolerations of the cluster to a pod', async () => {
    const { spec } = (await plane.request('POST', PODS, pod('p'))).json() as { spec: Json }
    assert.deepEqual(spec['nodeSelector'], { a: 'b' })
    const keys = (spec['tolerations'] as Json[]).map(({ key }) => String(key))
    assert.deepEqual(
      new Set(keys),
      new Set(['dedicated', 'node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']),
    )
  })

  it('refuses selectors and tolerations beyond those of the cluster', async () => {
    const selected = await plane.request('POST', PODS, pod('q', { nodeSelector: { a: 'c' } }))
    assert.equal(selected.status, 403)
    const tolerating = await plane.request('POST', PODS, pod('q', { tolerations: [{ operator: 'Exists' }] }))
    assert.deepEqual(
      [tolerating.status, tolerating.json()['message']],
      [500, 'pod tolerations (possibly merged with namespace default tolerations) conflict with its cluster whitelist'],
    )
  })

  it('sends images to the image policy webhook, with the credentials of its kubeconfig', async () => {
    const refused = await plane.request('POST', PODS, pod('r', { containers: [{ name: 'c', image: 'bad:1' }] }))
    assert.deepEqual(
      [refused.status, refused.json()['message']],
      [403, 'pods "r" is forbidden: image policy webhook backend denied one or more images: bad image'],
    )
    const { url, headers, review } = backend.asked.at(-1)!
    assert.deepEqual([url, headers.authorization], ['/review?timeout=30s', 'Bearer secret'])
    assert.deepEqual(review, {
      kind: 'ImageReview',
      apiVersion: 'imagepolicy.k8s.io/v1alpha1',
      metadata: {},
      spec: { containers: [{ image: 'bad:1' }], namespace: 'default' },
      status: { allowed: false },
    })
  })

  it('calls the image policy webhook again after a server error', async () => {
    const before = backend.asked.length
    const admitted = await plane.request('POST', PODS, pod('f', { containers: [{ name: 'c', image: 'flaky:1' }] }))
    assert.deepEqual([admitted.status, backend.asked.length - before], [201, 3])
  })

  it('allows blockOwnerDeletion only to users who may set finalizers of the owner', async () => {
    const role = { rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['create'] }] }
    const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default'
    await plane.request('POST', `${rbac}/roles`, { metadata: { name: 'creator' }, ...role })
    await plane.request('POST', `${rbac}/rolebindings`, {
      metadata: { name: 'creator' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'creator' },
      subjects: [{ kind: 'User', name: 'bob' }],
    })
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'o', uid: 'u', blockOwnerDeletion: true }
    const owned = { metadata: { name: 'owned', ownerReferences: [owner] } }
    const refused = await plane.request('POST', CONFIG_MAPS, owned, { 'impersonate-user': 'bob' })
    assert.deepEqual(
      [refused.status, refused.json()['message']],
      [
        403,
        'configmaps "owned" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can\'t set finalizers on: , <nil>',
      ],
    )
    assert.equal((await plane.request('POST', CONFIG_MAPS, owned)).status, 201)
  })
})

describe('kubeConfigFile of admission webhooks', () => {
  let hooked: HookedPlane
  before(async () => {
    const authority = createAuthority({ commonName: 'clients' }, { clock: realClock, random: secureRandom })
    const { certificatePem, keyPem } = authority.issue({ commonName: 'apiserver', purpose: 'client' })
    const base64 = (text: string): string => Buffer.from(text).toString('base64')
    const certificate = { 'client-certificate-data': base64(certificatePem), 'client-key-data': base64(keyPem) }
    const configuration = (kubeConfigFile: string): object => ({
      apiVersion: 'apiserver.config.k8s.io/v1',
      kind: 'WebhookAdmissionConfiguration',
      kubeConfigFile,
    })
    hooked = await startHookedPlane({
      settings: { 'admission-control-config-file': CONFIG },
      files: new Map([
        [
          CONFIG,
          admissionConfig(
            { name: 'MutatingAdmissionWebhook', configuration: configuration('/mutating') },
            { name: 'ValidatingAdmissionWebhook', configuration: configuration('/validating') },
          ),
        ],
        ['/mutating', JSON.stringify({ users: [{ name: '*', user: certificate }] })],
        ['/validating', JSON.stringify({ users: [{ name: '*', user: { token: 'secret' } }] })],
      ]),
    })
  })
  after(() => hooked[Symbol.asyncDispose]())

  it('contains separate credentials for each of the two plugins', async () => {
    hooked.respond('/m', () => ({ allowed: true }))
    hooked.respond('/v', () => ({ allowed: true }))
    await hooked.configure('mutating', 'm', [{ name: 'm.ex.io' }])
    await hooked.configure('validating', 'v', [{ name: 'v.ex.io' }])
    assert.equal((await hooked.request('POST', CONFIG_MAPS, configMap('a'))).status, 201)
    const [mutating, validating] = hooked.server.asked
    assert.deepEqual([mutating?.clientName, mutating?.headers.authorization], ['apiserver', undefined])
    assert.deepEqual([validating?.clientName, validating?.headers.authorization], ['', 'Bearer secret'])
  })
})
