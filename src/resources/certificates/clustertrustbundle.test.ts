import assert from 'node:assert/strict'
import { test } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'

import { changed, tryRules } from '../rules.fixture.ts'
import { clusterTrustBundle } from './clustertrustbundle.ts'

const { create, update, cells } = tryRules(clusterTrustBundle)
const authority = createAuthority({ commonName: 'ca' }, { clock: createVirtualClock(), random: createSeededRandom(1) })
const anchor = authority.certificatePem
const leaf = authority.issue({ commonName: 'leaf', purpose: 'client' }).certificatePem

const body = { metadata: { name: 'roots' }, spec: { trustBundle: anchor } }
const signed = {
  metadata: { name: 'example.com:signer:roots' },
  spec: { signerName: 'example.com/signer', trustBundle: anchor },
}

test('a ClusterTrustBundle contains certificates of authorities, each once', async () => {
  const shown = 'spec.trustBundle: Invalid value: "<value omitted>":'
  const table: readonly (readonly [string, readonly string[]])[] = [
    [anchor, []],
    [`words\n${anchor}more words`, []],
    ['', [`${shown} at least one trust anchor must be provided`]],
    ['no blocks at all', [`${shown} at least one trust anchor must be provided`]],
    [anchor + anchor, [`${shown} duplicate trust anchor (indices [0 1])`]],
    [anchor + leaf, [`${shown} entry 1 does not have the CA bit set`]],
    [anchor.replaceAll('CERTIFICATE', 'THING'), [`${shown} entry 0 has bad block type: THING`]],
    [anchor.replace('-----\n', '-----\nKey: value\n\n'), [`${shown} entry 0 has PEM block headers`]],
    ['-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n', [`${shown} entry 0 does not parse as X.509`]],
    ['x'.repeat(2 ** 20 + 1), ['spec.trustBundle: Too long: may not be more than 1048576 bytes']],
  ]
  for (const [bundle, errors] of table) {
    assert.deepEqual((await create(changed(body, 'spec.trustBundle', bundle))).errors, errors)
  }
})

test('a ClusterTrustBundle is named after its signer, if there is one', async () => {
  assert.deepEqual((await create(signed)).errors, [])
  assert.deepEqual((await create(changed(body, 'metadata.name', 'a:b'))).errors, [
    'metadata.name: Invalid value: "a:b": ClusterTrustBundle without signer name must not have ":" in its name',
  ])
  assert.deepEqual((await create(changed(signed, 'metadata.name', 'roots'))).errors, [
    'metadata.name: Invalid value: "roots": ClusterTrustBundle for signerName example.com/signer must be named with prefix example.com:signer:',
  ])
  const [bad] = (await create(changed(signed, 'metadata.name', 'example.com:signer:A'))).errors
  assert.match(bad ?? '', /^metadata\.name: Invalid value: "example\.com:signer:A": a lowercase RFC 1123 subdomain/)
  const generated = { ...body, metadata: { generateName: 'a:', name: 'a:x' } }
  assert.deepEqual(
    (await create(generated)).errors.map((error) => error.split(':')[0]),
    ['metadata.generateName', 'metadata.name'],
  )
})

test('a ClusterTrustBundle rejects updates of signerName, and does not parse an unchanged bundle again', async () => {
  const old = changed(body, 'spec.trustBundle', 'accepted long ago')
  assert.deepEqual((await update(old, old)).errors, [])
  assert.equal((await update(changed(body, 'spec.trustBundle', ''), body)).errors.length, 1)
  assert.deepEqual((await update(changed(signed, 'spec.signerName', 'example.com/other'), signed)).errors.slice(1), [
    'spec.signerName: Invalid value: "example.com/other": field is immutable',
  ])
})

test('a ClusterTrustBundle prints its signer, and can be selected by it', () => {
  assert.deepEqual(cells(body), ['roots', '<none>'])
  assert.deepEqual(cells(signed), ['example.com:signer:roots', 'example.com/signer'])
  assert.equal(clusterTrustBundle.fieldSelectors?.['spec.signerName']?.(signed as never), 'example.com/signer')
})
