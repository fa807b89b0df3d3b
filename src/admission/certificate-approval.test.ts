import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { ALLOWED, NO_OPINION } from '#apiserver/authorizers/authorizer.ts'
import { createKey } from '#lib/x509/key.ts'
import { createRequest } from '#lib/x509/request.ts'

import { createCertificateApproval } from './certificate-approval.ts'
import { createCertificateSigning } from './certificate-signing.ts'
import { certificateSubjectRestriction } from './certificate-subject-restriction.ts'
import { createClusterTrustBundleAttest } from './cluster-trust-bundle-attest.ts'
import { refusal } from './kit/sample-write.ts'
import type { Ask } from './kit/signer-access.ts'

const isEnabled = (): boolean => true

describe('the certificate plugins', () => {
  const asked: string[] = []
  const allowing =
    (...names: string[]): Ask =>
    (_, { verb, group, resource, name }) => {
      asked.push(`${verb} ${group}/${resource}/${name}`)
      return names.includes(name) ? ALLOWED : NO_OPINION
    }
  const resource = 'certificatesigningrequests.certificates.k8s.io'
  const request = (status: object = {}): object => ({
    metadata: { name: 'r' },
    spec: { request: '', signerName: 'example.com/client' },
    status,
  })

  it('ask about the signer, then about its domain', async () => {
    asked.length = 0
    const write = { resource, subresource: 'approval', object: request(), oldObject: request() }
    assert.equal(
      await refusal(createCertificateApproval(allowing()), write),
      'certificatesigningrequests.certificates.k8s.io "r" is forbidden: user not permitted to approve requests with signerName "example.com/client"',
    )
    assert.deepEqual(asked, [
      'approve certificates.k8s.io/signers/example.com/client',
      'approve certificates.k8s.io/signers/example.com/*',
    ])
    assert.equal(await refusal(createCertificateApproval(allowing('example.com/client')), write), undefined)
    assert.equal(await refusal(createCertificateApproval(allowing('example.com/*')), write), undefined)
  })

  it('ask signers only when something is signed', async () => {
    const judge = (object: object): Promise<string | undefined> =>
      refusal(createCertificateSigning(allowing()), { resource, subresource: 'status', object, oldObject: request() })
    assert.equal(await judge(request()), undefined)
    const message =
      'certificatesigningrequests.certificates.k8s.io "r" is forbidden: user not permitted to sign requests with signerName "example.com/client"'
    assert.equal(await judge(request({ certificate: 'YQ==' })), message)
    assert.equal(await judge(request({ conditions: [{ type: 'Failed' }] })), message)
  })

  it('let nobody into system:masters through the client signer', async () => {
    const key = createKey()
    const judge = (organizations: string[], signerName: string): Promise<string | undefined> => {
      const { pem } = createRequest({ commonName: 'eve', organizations }, key)
      const spec = { request: Buffer.from(pem).toString('base64'), signerName }
      return refusal(certificateSubjectRestriction, { resource, object: { metadata: { name: 'r' }, spec } })
    }
    const signer = 'kubernetes.io/kube-apiserver-client'
    assert.equal(await judge(['dev'], signer), undefined)
    assert.equal(await judge(['system:masters'], 'example.com/x'), undefined)
    assert.equal(
      await judge(['dev', 'system:masters'], signer),
      'certificatesigningrequests.certificates.k8s.io "r" is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed',
    )
    const broken = { metadata: { name: 'r' }, spec: { request: 'AAAA', signerName: signer } }
    assert.match(
      (await refusal(certificateSubjectRestriction, { resource, object: broken })) ?? '',
      /failed to parse CSR: /,
    )
  })

  it('ask who attests for a signer, unless only housekeeping is done', async () => {
    const plugin = createClusterTrustBundleAttest({ ask: allowing(), isEnabled })
    const bundle = (metadata: object = {}): object => ({
      metadata: { name: 'b', ...metadata },
      spec: { signerName: 'example.com/x', trustBundle: 't' },
    })
    const write = { resource: 'clustertrustbundles.certificates.k8s.io', object: bundle() }
    assert.match((await refusal(plugin, write)) ?? '', /user not permitted to attest for signerName "example.com\/x"$/)
    assert.equal(await refusal(plugin, { ...write, oldObject: bundle({ finalizers: ['x'] }) }), undefined)
    assert.notEqual(await refusal(plugin, { ...write, oldObject: bundle({ labels: { a: 'b' } }) }), undefined)
  })
})
