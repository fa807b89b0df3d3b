import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { ClusterTrustBundle } from '#apis/certificates/v1beta1.ts'
import { encodePem } from '#lib/x509/pem.ts'

import { trustAnchors } from './trust-anchors.ts'
import type { TrustAsk } from './volume-plugin.ts'

const pem = (text: string): string => encodePem('CERTIFICATE', Buffer.from(text))

const BUNDLES: readonly ClusterTrustBundle[] = [
  { metadata: { name: 'one' }, spec: { trustBundle: `# words\n${pem('b')}${pem('a')}` } },
  { metadata: { name: 'x:1', labels: { v: '1' } }, spec: { signerName: 'example.com/x', trustBundle: pem('a') } },
  {
    metadata: { name: 'x:2', labels: { v: '2' } },
    spec: { signerName: 'example.com/x', trustBundle: pem('a') + pem('c') },
  },
]

const ask = (more: Partial<TrustAsk>): TrustAsk => ({
  name: undefined,
  signerName: undefined,
  labelSelector: undefined,
  isOptional: false,
  ...more,
})

test('certificates come each once and in the same order, by name or by signer', () => {
  assert.equal(trustAnchors(BUNDLES, ask({ name: 'one' })), pem('a') + pem('b'))
  const signerName = 'example.com/x'
  assert.equal(trustAnchors(BUNDLES, ask({ signerName, labelSelector: {} })), pem('a') + pem('c'))
  assert.equal(trustAnchors(BUNDLES, ask({ signerName, labelSelector: { matchLabels: { v: '1' } } })), pem('a'))
  assert.equal(trustAnchors(BUNDLES, ask({ name: 'none', isOptional: true })), '')
  assert.throws(() => trustAnchors(BUNDLES, ask({ signerName })), {
    message: 'combination of signerName and labelSelector matched zero ClusterTrustBundles',
  })
  assert.throws(
    () => trustAnchors(BUNDLES, ask({ name: 'none' })),
    /while getting ClusterTrustBundle: .* "none" not found/,
  )
})
