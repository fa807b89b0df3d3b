import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { ALLOWED, NO_OPINION } from '#auth/authorizer.ts'
import { refusal } from '#kits/admission/sample-write.ts'
import { createKey } from '#lib/x509/key.ts'
import { createRequest } from '#lib/x509/request.ts'

import { createCertificateApproval } from './certificate-approval.ts'
import { createCertificateSigning } from './certificate-signing.ts'
import { certificateSubjectRestriction } from './certificate-subject-restriction.ts'
import { createClusterTrustBundleAttest } from './cluster-trust-bundle-attest.ts'
import type { Authorize } from './kit/signer-access.ts'

const isEnabled = (): boolean => true

describe('CertificateApproval, CertificateSigning and CertificateSubjectRestriction', () => {
  const accesses: string[] = []
  const allowing =
    (...names: string[]): Authorize =>
    (_, { verb, group, resource, name }) => {
      accesses.push(`${verb} ${group}/${resource}/${name}`)
      return names.includes(name) ? ALLOWED : NO_OPINION
    }
  const resource = 'certificatesigningrequests.certificates.k8s.io'
  const request = (status: object = {}): object => ({
    metadata: { name: 'r' },
    spec: { request: '', signerName: 'example.com/client' },
    status,
  })

  it('check that the user may approve or sign for the signer name, or for all signers of its domain', async () => {
    accesses.length = 0
    const write = { resource, subresource: 'approval', object: request(), oldObject: request() }
    assert.equal(
      await refusal(createCertificateApproval(allowing()), write),
      'certificatesigningrequests.certificates.k8s.io "r" is forbidden: user not permitted to approve requests with signerName "example.com/client"',
    )
    assert.deepEqual(accesses, [
      'approve certificates.k8s.io/signers/example.com/client',
      'approve certificates.k8s.io/signers/example.com/*',
    ])
    assert.equal(await refusal(createCertificateApproval(allowing('example.com/client')), write), undefined)
    assert.equal(await refusal(createCertificateApproval(allowing('example.com/*')), write), undefined)
  })

  it('check permissions for the signer only if the certificate or a condition changes', async () => {
    const refusalOf = (object: object): Promise<string | undefined> =>
      refusal(createCertificateSigning(allowing()), { resource, subresource: 'status', object, oldObject: request() })
    assert.equal(await refusalOf(request()), undefined)
    const message =
      'certificatesigningrequests.certificates.k8s.io "r" is forbidden: user not permitted to sign requests with signerName "example.com/client"'
    assert.equal(await refusalOf(request({ certificate: 'YQ==' })), message)
    assert.equal(await refusalOf(request({ conditions: [{ type: 'Failed' }] })), message)
  })

  it('reject a client certificate request for the group system:masters', async () => {
    const key = createKey()
    const refusalOf = (organizations: string[], signerName: string): Promise<string | undefined> => {
      const { pem } = createRequest({ commonName: 'eve', organizations }, key)
      const spec = { request: Buffer.from(pem).toString('base64'), signerName }
      return refusal(certificateSubjectRestriction, { resource, object: { metadata: { name: 'r' }, spec } })
    }
    const signer = 'kubernetes.io/kube-apiserver-client'
    assert.equal(await refusalOf(['dev'], signer), undefined)
    assert.equal(await refusalOf(['system:masters'], 'example.com/x'), undefined)
    assert.equal(
      await refusalOf(['dev', 'system:masters'], signer),
      'certificatesigningrequests.certificates.k8s.io "r" is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed',
    )
    const broken = { metadata: { name: 'r' }, spec: { request: 'AAAA', signerName: signer } }
    assert.match(
      (await refusal(certificateSubjectRestriction, { resource, object: broken })) ?? '',
      /failed to parse CSR: /,
    )
  })

  it('check permission to attest for a signer, unless only finalizers change', async () => {
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
