/** Tests the reading of certificates in the browser, and the rows of their page. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { encodePem } from '#lib/x509/pem.ts'
import type { KubeObject } from '#meta/object.ts'

import { readCertificate, readPem } from './certificate.ts'
import { DerError } from './der.ts'
import { entriesOf, fits, rowsOf, stateOf, summaryText } from './entries.ts'
import { type Source, SOURCES } from './sources.ts'

const DAY_MS = 24 * 3_600_000
const START_MS = Date.parse('2048-12-01T00:00:00Z')
const clock = createVirtualClock(START_MS)
const authority = createAuthority(
  { commonName: 'the ca', organizations: ['a,b'] },
  { clock, random: createSeededRandom(1) },
)
const names = { dns: ['example.com', '*.example.com'], ips: ['10.0.0.1', 'fd00::1'], uris: ['spiffe://a/b'] }
const issued = authority.issue({ commonName: 'wëb', purpose: 'server', names, validityMs: 40.5 * DAY_MS })
const base64 = (text: string): string => Buffer.from(text).toString('base64')

describe('readPem()', () => {
  it('reads subject, issuer, names and times as the certificate library of the server', () => {
    const [found] = readPem(issued.certificatePem)
    const { notBeforeMs, notAfterMs } = issued.certificate
    assert.deepEqual(found?.facts, {
      subject: 'CN=wëb',
      issuer: String.raw`CN=the ca,O=a\,b`,
      names: ['example.com', '*.example.com', '10.0.0.1', 'fd00::1', 'spiffe://a/b'],
      notBeforeMs,
      notAfterMs,
    })
    assert.equal(found?.id, issued.certificate.der.toString('base64'))
  })

  it('reads a time after 2049', () => {
    const [found] = readPem(authority.certificatePem)
    assert.equal(found?.facts?.notAfterMs, authority.certificate.notAfterMs)
  })

  it('reads all certificates of a bundle and no keys', () => {
    const found = readPem(`# comment\n${issued.keyPem}${issued.certificatePem}\n${authority.certificatePem}`)
    assert.deepEqual(
      found.map(({ facts }) => facts?.subject),
      ['CN=wëb', String.raw`CN=the ca,O=a\,b`],
    )
    assert.ok(!JSON.stringify(found).includes(issued.keyPem.split('\n')[1]!))
  })

  it('has the reason in place of a certificate that cannot be read', () => {
    const broken = encodePem('CERTIFICATE', issued.certificate.der.subarray(0, 100))
    assert.deepEqual(readPem(broken)[0]?.error, 'The certificate is cut off')
    assert.deepEqual(readPem('-----BEGIN CERTIFICATE-----\nA=A\n-----END CERTIFICATE-----')[0]?.facts, undefined)
    assert.deepEqual(readPem('no certificate'), [])
  })
})

describe('readCertificate()', () => {
  it('throws only DerError for bytes that were changed', () => {
    const { der } = issued.certificate
    const change = fc.tuple(fc.nat(der.length - 1), fc.integer({ min: 0, max: 255 }))
    fc.assert(
      fc.property(fc.array(change, { maxLength: 5 }), fc.nat(der.length), (changes, length) => {
        const bytes = Uint8Array.from(der)
        for (const [at, value] of changes) bytes[at] = value
        for (const input of [bytes, bytes.subarray(0, length)]) {
          try {
            readCertificate(input)
          } catch (error) {
            assert.ok(error instanceof DerError, String(error))
          }
        }
      }),
    )
  })
})

const source = (name: string): Source => SOURCES.find((one) => one.name === name)!

describe('sources of certificates', () => {
  const bundle = base64(authority.certificatePem)
  const cases: readonly (readonly [name: string, fields: object, field: string])[] = [
    ['TLS Secrets', { data: { 'tls.crt': bundle, 'tls.key': base64(issued.keyPem), other: bundle } }, 'tls.crt'],
    ['authorities of the cluster', { data: { 'ca.crt': authority.certificatePem } }, 'ca.crt'],
    ['authorities of clients', { data: { 'client-ca-file': authority.certificatePem } }, 'client-ca-file'],
    ['validating webhooks', { webhooks: [{ name: 'a.b', clientConfig: { caBundle: bundle } }] }, 'a.b'],
    ['mutating webhooks', { webhooks: [{ name: 'a.b', clientConfig: { caBundle: bundle } }] }, 'a.b'],
    ['APIServices', { spec: { caBundle: bundle } }, 'caBundle'],
    [
      'conversion webhooks',
      { spec: { conversion: { strategy: 'Webhook', webhook: { clientConfig: { caBundle: bundle } } } } },
      'caBundle',
    ],
    ['certificate signing requests', { status: { certificate: bundle } }, 'status.certificate'],
  ]
  for (const [name, fields, field] of cases) {
    it(`finds that of ${name}`, () => {
      const found = entriesOf(source(name), { metadata: { name: 'x' }, ...fields })
      assert.deepEqual(
        found.map((entry) => [entry.at.name, entry.field, entry.facts?.issuer]),
        [['x', field, String.raw`CN=the ca,O=a\,b`]],
      )
      assert.ok(!JSON.stringify(found).includes(base64(issued.keyPem)))
    })
  }

  it('find nothing in objects without certificates', () => {
    const empty = { metadata: { name: 'x' }, spec: {} } as KubeObject
    for (const one of SOURCES) assert.deepEqual(entriesOf(one, empty), [], one.name)
  })
})

describe('rows of certificates', () => {
  const secret = (name: string, namespace: string, pem: string): KubeObject =>
    ({ metadata: { name, namespace }, data: { 'tls.crt': base64(pem) } }) as KubeObject
  const rows = rowsOf(
    [
      secret('ca', 'a', authority.certificatePem),
      secret('web', 'a', issued.certificatePem),
      secret('web', 'b', issued.certificatePem),
      secret('broken', 'a', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'),
    ].flatMap((object) => entriesOf(source('TLS Secrets'), object)),
  )

  it('begin with the first end, and have copies once', () => {
    assert.deepEqual(
      rows.map(({ at, copies }) => [at.name, at.namespace, copies]),
      [
        ['web', 'a', 1],
        ['ca', 'a', 0],
        ['broken', 'a', 0],
      ],
    )
  })

  it('warn 30 days before the end', () => {
    const states = [-1, 0, 10.8, 39, 39.9, 41].map((days) => stateOf(rows[0]!, START_MS + days * DAY_MS))
    assert.deepEqual(
      states.map(({ text, tone }) => `${text}: ${tone}`),
      [
        'Not valid yet: bad',
        'Ends in 40 days: good',
        'Ends in 29 days: busy',
        'Ends in 1 day: busy',
        'Ends today: busy',
        'Ended: bad',
      ],
    )
    assert.equal(stateOf(rows[1]!, START_MS).text, 'Ends in 10 years')
    assert.equal(stateOf(rows[2]!, START_MS).text, 'Unreadable')
    assert.equal(summaryText(rows, START_MS), '3 certificates. None ends within 30 days.')
    assert.equal(summaryText(rows, START_MS + 11 * DAY_MS), '3 certificates. 0 ended, 1 ends within 30 days.')
  })

  it('fit a filter by any name', () => {
    const found = (filter: string): readonly string[] =>
      rows.filter((row) => fits(row, filter)).map(({ at }) => at.name)
    assert.deepEqual([found('fd00'), found('the ca'), found('zzz')], [['web'], ['web', 'ca'], []])
  })
})
