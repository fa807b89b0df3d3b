/**
 * Tests unused legacy tokens, pod certificate requests and the API server's trust bundle, on a complete API server with
 * a virtual clock.
 */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { ClusterTrustBundles, PodCertificateRequests } from '#apis/certificates/v1beta1.ts'
import { Pods, Secrets, ServiceAccounts } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { Controller } from '#controllers/controller.ts'
import { podCertificateCleanerController } from '#controllers/identity/certificates/pod-cleaner.ts'
import {
  bundleName,
  clusterTrustBundlePublisherController,
} from '#controllers/identity/clustertrustbundle-publisher.ts'
import { legacyTokenCleanerController } from '#controllers/identity/legacy-serviceaccount-token-cleaner.ts'
import { controllerSettings, type ControllerSettings } from '#controllers/settings.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { createKey } from '#lib/x509/key.ts'
import { createRequest } from '#lib/x509/request.ts'
import { isNotFound } from '#meta/status.ts'
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from '#testing/control-plane.ts'

const DAY_MS = 24 * 3_600_000
const namespace = 'default'
let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient

beforeEach(() => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

const start = async (
  controller: Controller,
  chosen: Partial<ControllerSettings>,
  settings: NonNullable<ControlPlaneOptions['settings']> = {},
  bundle = '',
): Promise<void> => {
  plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': ['ServiceAccount'], ...settings } })
  controllers = startControllers(plane, clock, [controller], {
    settings: controllerSettings(chosen),
    readFile: () => Promise.resolve(bundle),
    gates: { ClusterTrustBundle: true, PodCertificateRequest: true },
  })
  client = controllers.client
  await clock.advance(1000)
}

describe('legacy service account tokens without use', () => {
  const make = async (name: string, labels: Record<string, string> = {}): Promise<void> => {
    const annotations = { 'kubernetes.io/service-account.name': 'robot' }
    const type = 'kubernetes.io/service-account-token'
    await client.create(Secrets, { metadata: { namespace, name, annotations, labels }, type })
  }

  /** The Secrets after the cleaner's round on a day, with the day of their invalidation. */
  const after = async (day: number): Promise<string[]> => {
    await controllers.stop()
    const later = createVirtualClock(Date.UTC(2026, 0, day))
    controllers = startControllers(plane, later, [legacyTokenCleanerController], { settings: SETTINGS })
    await later.advance(1000)
    const { items } = await client.list(Secrets, { namespace })
    return items.map(({ metadata: { name, labels = {} } }) => [name, labels[INVALID]].join(' ').trim())
  }
  const INVALID = 'kubernetes.io/legacy-token-invalid-since'
  const SETTINGS = controllerSettings({ 'legacy-service-account-token-clean-up-period': 10 * DAY_MS })

  it('get a label, and are deleted after the same period again; used tokens stay', async () => {
    await start(legacyTokenCleanerController, SETTINGS)
    const secrets = ['old', 'used', 'mounted'].map((name) => ({ name }))
    await client.create(ServiceAccounts, { metadata: { namespace, name: 'robot' }, secrets })
    await make('old', { 'kubernetes.io/legacy-token-last-used': '2026-01-01' })
    await make('used', { 'kubernetes.io/legacy-token-last-used': '2027-01-01' })
    await make('mounted')
    await make('by-hand')
    const containers = [{ name: 'c', image: 'i', resources: {} }]
    const volumes = [{ name: 'v', secret: { secretName: 'mounted' } }]
    await client.create(Pods, { metadata: { namespace, name: 'p' }, spec: { containers, volumes } })
    const others = ['by-hand', 'mounted', 'used']
    assert.deepEqual(
      (await after(11)).toSorted(),
      [...others, 'old'].toSorted(),
      'their use is not known for long enough',
    )
    assert.deepEqual((await after(13)).toSorted(), [...others, 'old 2026-01-13'].toSorted())
    assert.deepEqual((await after(23)).toSorted(), [...others, 'old 2026-01-13'].toSorted())
    assert.deepEqual((await after(24)).toSorted(), others)
  })
})

describe('PodCertificateRequest cleaner', () => {
  it('deletes requests after 15 minutes', async () => {
    await start(
      podCertificateCleanerController,
      {},
      {
        'runtime-config': new Map([['certificates.k8s.io/v1beta1/podcertificaterequests', 'true']]),
        'feature-gates': new Map([['PodCertificateRequest', true]]),
      },
    )
    const spec = {
      signerName: 'example.com/signer',
      podName: 'pod',
      podUID: 'uid-1',
      serviceAccountName: 'sa',
      serviceAccountUID: 'uid-2',
      nodeName: 'node',
      nodeUID: 'uid-3',
      pkixPublicKey: null,
      proofOfPossession: null,
      stubPKCS10Request: createRequest({ commonName: '' }, createKey()).der.toString('base64'),
    }
    await client.create(PodCertificateRequests, { metadata: { namespace, name: 'r' }, spec })
    await clock.advance(14 * 60_000)
    await client.get(PodCertificateRequests, { namespace, name: 'r' })
    await clock.advance(6 * 60_000)
    await assert.rejects(client.get(PodCertificateRequests, { namespace, name: 'r' }), isNotFound)
  })
})

describe('trust bundle of the API server', () => {
  const SETTINGS = {
    'runtime-config': new Map([['certificates.k8s.io/v1beta1/clustertrustbundles', 'true']]),
    'feature-gates': new Map([['ClusterTrustBundle', true]]),
  }

  it('is a ClusterTrustBundle named by its hash, and replaces old ones', async () => {
    const bundle = createAuthority({ commonName: 'ca' }, { clock, random: secureRandom }).certificatePem
    await start(clusterTrustBundlePublisherController, { 'root-ca-file': 'ca.crt' }, SETTINGS, bundle)
    const name = bundleName(bundle)
    assert.match(name, /^kubernetes\.io:kube-apiserver-serving:[0-9a-f]{24}$/)
    const spec = { signerName: 'kubernetes.io/kube-apiserver-serving', trustBundle: bundle }
    assert.deepEqual((await client.get(ClusterTrustBundles, { name })).spec, spec)
    const old = 'kubernetes.io:kube-apiserver-serving:old'
    await client.create(ClusterTrustBundles, { metadata: { name: old }, spec })
    await client.delete(ClusterTrustBundles, { name })
    await clock.advance(1000)
    await assert.rejects(client.get(ClusterTrustBundles, { name: old }), isNotFound)
    await client.get(ClusterTrustBundles, { name })
  })

  it('is not published if ClusterTrustBundle is not served', async () => {
    await start(clusterTrustBundlePublisherController, { 'root-ca-file': 'ca.crt' }, {}, 'BUNDLE')
    await assert.rejects(client.list(ClusterTrustBundles), isNotFound)
  })
})
