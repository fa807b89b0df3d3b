/**
 * Tests CertificateSigningRequests on a complete API server with a virtual clock: approval, signing, failure and
 * cleanup.
 */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { type CertificateSigningRequest, CertificateSigningRequests } from '#apis/certificates/v1.ts'
import { ClusterRoleBindings } from '#apis/rbac/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { certificateApprovingController } from '#controllers/identity/certificates/approving.ts'
import { certificateCleanerController } from '#controllers/identity/certificates/cleaner.ts'
import { certificateSigningController, lifeOf, planSigners } from '#controllers/identity/certificates/signing.ts'
import { controllerSettings } from '#controllers/settings.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { type Certificate, parseCertificate } from '#lib/x509/certificate.ts'
import { createKey } from '#lib/x509/key.ts'
import { createRequest, type RequestPlan } from '#lib/x509/request.ts'
import { isNotFound } from '#meta/status.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const DAY_MS = 24 * 3_600_000
const CLIENT = 'kubernetes.io/kube-apiserver-client'
const KUBELET = 'kubernetes.io/kube-apiserver-client-kubelet'
const SERVING = 'kubernetes.io/kubelet-serving'

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient
let files: Map<string, string>

const makeAuthority = (commonName: string): void => {
  const { certificatePem, keyPem } = createAuthority({ commonName }, { clock, random: secureRandom })
  files.set('ca.crt', certificatePem).set('ca.key', keyPem)
}

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  files = new Map()
  makeAuthority('cluster')
  plane = await startControlPlane({ clock })
  const all = [certificateApprovingController, certificateSigningController, certificateCleanerController]
  const settings = controllerSettings({ 'cluster-signing-cert-file': 'ca.crt', 'cluster-signing-key-file': 'ca.key' })
  const readFile = (path: string): Promise<string> => Promise.resolve(files.get(path) ?? '')
  controllers = startControllers(plane, clock, all, { settings, readFile })
  client = controllers.client
  await clock.advance(1000)
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

interface Asked {
  readonly name: string
  readonly signerName: string
  readonly usages: string[]
  readonly plan?: RequestPlan
  readonly expirationSeconds?: number
}

const ask = async ({ name, plan, ...rest }: Asked): Promise<void> => {
  const { pem } = createRequest(plan ?? { commonName: 'jane', organizations: ['dev'] }, createKey())
  const spec = { ...rest, request: Buffer.from(pem).toString('base64') }
  await client.create(CertificateSigningRequests, { metadata: { name }, spec })
}

const decide = async (name: string, type = 'Approved'): Promise<void> => {
  const found = await client.get(CertificateSigningRequests, { name })
  const times = { lastUpdateTime: null, lastTransitionTime: null }
  const conditions = [{ type, status: 'True', reason: 'ByHand', message: 'm', ...times }]
  const decided = { ...found, status: { ...found.status, conditions } }
  await client.update(CertificateSigningRequests, decided, { subresource: 'approval' })
  await clock.advance(1000)
}

const find = (name: string): Promise<CertificateSigningRequest> => client.get(CertificateSigningRequests, { name })

const certificateOf = async (name: string): Promise<Certificate> => {
  const { status } = await find(name)
  return parseCertificate(Buffer.from(status.certificate ?? '', 'base64').toString())
}

const failureOf = async (name: string): Promise<string> => {
  const { status } = await find(name)
  const failed = status.conditions?.find(({ type }) => type === 'Failed')
  return `${failed?.status} ${failed?.reason} ${failed?.message}`
}

describe('approved CertificateSigningRequest', () => {
  it('gets a certificate for a year that began five minutes ago', async () => {
    await ask({ name: 'jane', signerName: CLIENT, usages: ['client auth', 'digital signature'] })
    await clock.advance(60_000)
    assert.equal((await find('jane')).status.certificate, undefined)
    const nowMs = clock.now()
    await decide('jane')
    const certificate = await certificateOf('jane')
    assert.equal(certificate.subject.commonName, 'jane')
    assert.deepEqual(certificate.subject.organizations, ['dev'])
    assert.equal(certificate.issuer.commonName, 'cluster')
    assert.deepEqual(certificate.usages.toSorted(), ['client auth', 'digital signature'])
    assert.ok(certificate.isConstrained && !certificate.isAuthority)
    assert.equal(certificate.notBeforeMs, nowMs - 300_000)
    assert.equal(certificate.notAfterMs, nowMs - 300_000 + 365 * DAY_MS)
  })

  it('gets the requested validity', async () => {
    await ask({ name: 'short', signerName: CLIENT, usages: ['client auth'], expirationSeconds: 3600 })
    const nowMs = clock.now()
    await decide('short')
    assert.equal((await certificateOf('short')).notAfterMs, nowMs + 3_600_000)
  })

  it('is signed by the CA in the current files', async () => {
    makeAuthority('next')
    await ask({ name: 'jane', signerName: CLIENT, usages: ['client auth'] })
    await decide('jane')
    assert.equal((await certificateOf('jane')).issuer.commonName, 'next')
  })

  it('is ignored if its signer is another', async () => {
    await ask({ name: 'foreign', signerName: 'example.com/mine', usages: ['client auth'] })
    await decide('foreign')
    const { status } = await find('foreign')
    assert.deepEqual([status.certificate, status.conditions?.length], [undefined, 1])
  })

  const node = { commonName: 'system:node:n1', organizations: ['system:nodes'] }
  const client3 = ['digital signature', 'key encipherment', 'client auth']
  const server3 = ['digital signature', 'key encipherment', 'server auth']
  const failures: readonly [Omit<Asked, 'name'>, string][] = [
    [
      { signerName: CLIENT, usages: ['client auth', 'server auth'] },
      'invalid usage for client certificate: server auth',
    ],
    [
      { signerName: CLIENT, usages: ['digital signature'] },
      'missing required usage for client certificate: client auth',
    ],
    [{ signerName: KUBELET, usages: client3 }, 'subject organization is not system:nodes'],
    [
      { signerName: KUBELET, usages: client3, plan: { ...node, names: { dns: ['a.b'] } } },
      'DNS subjectAltNames are not allowed',
    ],
    [
      { signerName: KUBELET, usages: client3, plan: { ...node, names: { ips: ['10.0.0.1'] } } },
      'IP subjectAltNames are not allowed',
    ],
    [
      { signerName: KUBELET, usages: client3, plan: { ...node, commonName: 'n1' } },
      'subject common name does not begin with system:node:',
    ],
    [
      { signerName: KUBELET, usages: server3, plan: node },
      'usages did not match [client auth digital signature key encipherment]',
    ],
    [{ signerName: SERVING, usages: server3, plan: node }, 'DNS or IP subjectAltName is required'],
    [
      { signerName: SERVING, usages: client3, plan: { ...node, names: { dns: ['n1'] } } },
      'usages did not match [digital signature key encipherment server auth]',
    ],
  ]
  for (const [asked, message] of failures) {
    it(`fails permanently: ${message}`, async () => {
      await ask({ name: 'bad', ...asked })
      await decide('bad')
      assert.equal(await failureOf('bad'), `True SignerValidationFailure ${message}`)
    })
  }

  it('of a kubelet gets a serving certificate', async () => {
    const names = { dns: ['n1'], ips: ['10.0.0.1'] }
    await ask({
      name: 'serving',
      signerName: SERVING,
      usages: ['digital signature', 'server auth'],
      plan: { ...node, names },
    })
    await decide('serving')
    const certificate = await certificateOf('serving')
    assert.deepEqual([certificate.names.dns, certificate.names.ips], [['n1'], ['10.0.0.1']])
  })
})

describe('CertificateSigningRequest of a kubelet', () => {
  const usages = ['digital signature', 'client auth']

  it('is approved automatically if the user is authorized', async () => {
    const plan = { commonName: 'system:node:n1', organizations: ['system:nodes'] }
    await ask({ name: 'n1', signerName: KUBELET, usages, plan })
    await clock.advance(1000)
    const { status } = await find('n1')
    const [approved] = status.conditions ?? []
    assert.deepEqual(
      [approved?.type, approved?.status, approved?.reason, approved?.message],
      ['Approved', 'True', 'AutoApproved', 'Auto approving kubelet client certificate after SubjectAccessReview.'],
    )
    assert.equal((await certificateOf('n1')).subject.commonName, 'system:node:n1')
  })

  it('is approved for a renewal with another permission, and waits without it', async () => {
    const { pem } = createRequest({ commonName: 'system:node:n2', organizations: ['system:nodes'] }, createKey())
    const spec = { signerName: KUBELET, usages, request: Buffer.from(pem).toString('base64') }
    const body = {
      kind: 'CertificateSigningRequest',
      apiVersion: 'certificates.k8s.io/v1',
      metadata: { name: 'n2' },
      spec,
    }
    const who = { 'impersonate-user': 'system:node:n2', 'impersonate-group': 'system:nodes' }
    const headers = { authorization: `Bearer ${plane.token}`, ...who }
    const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
    const answer = await plane.request('POST', path, body, headers)
    assert.equal(answer.status, 201, answer.text)
    await clock.advance(1000)
    assert.equal((await find('n2')).status.conditions, undefined)
    const group = 'rbac.authorization.k8s.io'
    const name = 'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient'
    await client.create(ClusterRoleBindings, {
      metadata: { name: 'renew' },
      roleRef: { apiGroup: group, kind: 'ClusterRole', name },
      subjects: [{ apiGroup: group, kind: 'Group', name: 'system:nodes' }],
    })
    await clock.advance(10_000)
    const [approved] = (await find('n2')).status.conditions ?? []
    assert.equal(approved?.message, 'Auto approving self kubelet client certificate after SubjectAccessReview.')
  })
})

describe('old CertificateSigningRequests', () => {
  const there = (name: string): Promise<boolean> =>
    find(name).then(
      () => true,
      (error: unknown) => {
        assert.ok(isNotFound(error))
        return false
      },
    )

  it('are deleted in the next round of the cleaner', async () => {
    for (const name of ['issued', 'pending'])
      await ask({ name, signerName: CLIENT, usages: ['client auth'], expirationSeconds: 600 })
    await decide('issued')
    await clock.advance(3_590_000)
    assert.ok(await there('issued'))
    await clock.advance(10_000)
    assert.ok(!(await there('issued')))
    assert.ok(await there('pending'))
  })
})

describe('flags for signer files', () => {
  const own = { 'cluster-signing-kubelet-client-cert-file': 'a', 'cluster-signing-kubelet-client-key-file': 'b' }
  const shared = { 'cluster-signing-cert-file': 'c', 'cluster-signing-key-file': 'd' }

  it('are given for each signer or for all, not both', () => {
    assert.equal(planSigners(controllerSettings()), undefined)
    assert.equal(planSigners(controllerSettings({ 'cluster-signing-cert-file': 'c' })), undefined)
    const plan = planSigners(controllerSettings(own))
    assert.deepEqual([plan?.get(KUBELET), plan?.get(CLIENT)], [{ certificate: 'a', key: 'b' }, undefined])
    assert.deepEqual(planSigners(controllerSettings(shared))?.get(CLIENT), { certificate: 'c', key: 'd' })
    assert.throws(() => planSigners(controllerSettings({ ...own, ...shared })), {
      message: 'cannot specify default and per controller certs at the same time',
    })
  })

  it('set the maximum validity of certificates', () => {
    assert.equal(lifeOf(undefined, DAY_MS), DAY_MS)
    assert.equal(lifeOf(10 * 86_400, DAY_MS), DAY_MS)
    assert.equal(lifeOf(60, DAY_MS), 600_000)
    assert.equal(lifeOf(3600, DAY_MS), 3_600_000)
    assert.equal(lifeOf(60, 300_000), 600_000)
  })
})
