import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Secret } from '#apis/core/v1.ts'
import type { Ingress } from '#apis/networking/v1.ts'
import { realClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'

import { namedPairs, pairOf, secureHosts } from './certificates.ts'

const tools = { clock: realClock, random: createSeededRandom(1) }
const issued = createAuthority({ commonName: 'test' }, tools).issue({
  commonName: 'web',
  names: { dns: ['web.example', '*.web.example'] },
  purpose: 'server',
})
const other = createAuthority({ commonName: 'other' }, tools).issue({ commonName: 'x', purpose: 'server' })
const secret = (certificate: string, key: string): Secret => ({
  metadata: {},
  data: { 'tls.crt': Buffer.from(certificate).toString('base64'), 'tls.key': Buffer.from(key).toString('base64') },
})
const pair = { certificate: issued.certificatePem, key: issued.keyPem }
const ingress = (name: string, tls: object[], creationTimestamp?: string): Ingress =>
  ({ metadata: { name, namespace: 'shop', creationTimestamp }, spec: { tls } }) as unknown as Ingress

test('a TLS Secret yields a certificate only if its key matches', () => {
  assert.deepEqual(pairOf(secret(issued.certificatePem, issued.keyPem)), pair)
  assert.equal(pairOf(secret(issued.certificatePem, other.keyPem)), undefined)
  assert.equal(pairOf(secret('nothing', issued.keyPem)), undefined)
  assert.equal(pairOf({ metadata: {} }), undefined)
  assert.equal(pairOf(undefined), undefined)
})

test('the oldest Ingress with a valid certificate for a host provides it', () => {
  const problems: string[] = []
  const pairs = namedPairs(
    [
      ingress('one', [{ hosts: ['A.example'], secretName: 'good' }], '2026-01-01T00:00:00Z'),
      ingress('two', [{ hosts: ['a.example', 'b.example'], secretName: 'good' }], '2026-01-02T00:00:00Z'),
      ingress('three', [{ hosts: ['c.example'], secretName: 'bad' }, { hosts: ['d.example'] }], '2026-01-03T00:00:00Z'),
      ingress('four', [{ secretName: 'good' }], '2026-01-04T00:00:00Z'),
    ],
    (_, name) => (name === 'good' ? pair : undefined),
    (own, reason) => problems.push(`${own.metadata.name}: ${reason}`),
  )
  assert.deepEqual(
    pairs.map(({ names }) => names),
    [['a.example'], ['b.example'], ['web.example', '*.web.example']],
  )
  assert.deepEqual(problems, ['three: Secret "bad" has no certificate with its key'])
})

test('a younger Ingress does not replace the certificate of a host, in any order of events', () => {
  const tls = (secretName: string): object[] => [{ hosts: ['a.example'], secretName }]
  const old = ingress('z', tls('old'), '2026-01-01T00:00:00Z')
  const young = ingress('a', tls('young'), '2026-01-01T00:00:01Z')
  const alike = ingress('zz', tls('alike'), '2026-01-01T00:00:00Z')
  for (const order of [
    [old, young, alike],
    [young, alike, old],
    [alike, young, old],
  ]) {
    const pairs = namedPairs(order, (_, name) => ({ ...pair, certificate: name }))
    assert.deepEqual(pairs, [{ ...pair, certificate: 'old', names: ['a.example'] }])
  }
})

test('a host in spec.tls counts as secure even if its Secret does not exist', () => {
  const hosts = secureHosts([ingress('one', [{ hosts: ['A.example'], secretName: 'x' }, { hosts: ['b.example'] }])])
  assert.deepEqual([...hosts], ['a.example', 'b.example'])
})
