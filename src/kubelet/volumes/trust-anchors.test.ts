import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { ClusterTrustBundle } from '#apis/certificates/v1beta1.ts'
import { encodePem } from '#lib/x509/pem.ts'

import { trustAnchors } from './trust-anchors.ts'
import type { TrustSelection } from './volume-plugin.ts'

const pem = (text: string): string => encodePem('CERTIFICATE', Buffer.from(text))

const BUNDLES: readonly ClusterTrustBundle[] = [
  { metadata: { name: 'one' }, spec: { trustBundle: `# words\n${pem('b')}${pem('a')}` } },
  { metadata: { name: 'x:1', labels: { v: '1' } }, spec: { signerName: 'example.com/x', trustBundle: pem('a') } },
  {
    metadata: { name: 'x:2', labels: { v: '2' } },
    spec: { signerName: 'example.com/x', trustBundle: pem('a') + pem('c') },
  },
]

const request = (more: Partial<TrustSelection>): TrustSelection => ({
  name: undefined,
  signerName: undefined,
  labelSelector: undefined,
  isOptional: false,
  ...more,
})

test('trust anchors of a volume are unique and in stable order, selected by bundle name or by signer', () => {
  assert.equal(trustAnchors(BUNDLES, request({ name: 'one' })), pem('a') + pem('b'))
  const signerName = 'example.com/x'
  assert.equal(trustAnchors(BUNDLES, request({ signerName, labelSelector: {} })), pem('a') + pem('c'))
  assert.equal(trustAnchors(BUNDLES, request({ signerName, labelSelector: { matchLabels: { v: '1' } } })), pem('a'))
  assert.equal(trustAnchors(BUNDLES, request({ name: 'none', isOptional: true })), '')
  assert.throws(() => trustAnchors(BUNDLES, request({ signerName })), {
    message: 'combination of signerName and labelSelector matched zero ClusterTrustBundles',
  })
  assert.throws(
    () => trustAnchors(BUNDLES, request({ name: 'none' })),
    /while getting ClusterTrustBundle: .* "none" not found/,
  )
})
