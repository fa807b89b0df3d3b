import assert from 'node:assert/strict'
import { constants, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { test } from 'node:test'

import type { Authorizer } from '#auth/authorizer.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { signCertificate } from '#lib/x509/certificate.ts'
import { createKey, publicKeyDer } from '#lib/x509/key.ts'
import { nameOf } from '#lib/x509/name.ts'
import { createRequest } from '#lib/x509/request.ts'
import { timeOf } from '#meta/time.ts'

import { changed, tryRules } from '../../rules.fixture.ts'
import { definePodCertificateRequest, podCertificateRequest } from './resource.ts'

const { read, create, update, cells } = tryRules(podCertificateRequest)
const key = createKey()
const base64 = (bytes: Buffer): string => bytes.toString('base64')
const stub = base64(createRequest({ commonName: '' }, key).der)

const body = {
  metadata: { name: 'r', namespace: 'ns' },
  spec: {
    signerName: 'example.com/signer',
    podName: 'pod',
    podUID: 'uid-1',
    serviceAccountName: 'sa',
    serviceAccountUID: 'uid-2',
    nodeName: 'node',
    nodeUID: 'uid-3',
    stubPKCS10Request: stub,
  },
}

test('a PodCertificateRequest records the pod and the maximum duration', async () => {
  assert.equal(read(body).spec.maxExpirationSeconds, 86_400)
  assert.deepEqual((await create(body)).errors, [])
  const table: readonly (readonly [string, unknown, RegExp])[] = [
    ['spec.signerName', '', /^spec\.signerName: Required value$/],
    ['spec.podName', 'A', /^spec\.podName: Invalid value: "A": a lowercase RFC 1123 subdomain/],
    ['spec.podUID', '', /^spec\.podUID: Invalid value: "": must not be empty$/],
    ['spec.serviceAccountUID', 'x'.repeat(129), /^spec\.serviceAccountUID: Too long: may not be more than 128 bytes$/],
    ['spec.nodeName', '_', /^spec\.nodeName: Invalid value: "_": a lowercase RFC 1123 subdomain/],
    [
      'spec.maxExpirationSeconds',
      10,
      /^spec\.maxExpirationSeconds: Invalid value: 10: must be in the range \[3600, 7862400\]$/,
    ],
    ['spec.unverifiedUserAnnotations', { a: 'b' }, /must be a domain-prefixed key \(such as "acme\.io\/foo"\)$/],
  ]
  for (const [path, value, error] of table) {
    const { errors } = await create(changed(body, path, value))
    assert.equal(errors.length, 1, path)
    assert.match(errors[0] ?? '', error)
  }
  const own = { ...body, spec: { ...body.spec, signerName: 'kubernetes.io/x', maxExpirationSeconds: 90_000 } }
  assert.deepEqual((await create(own)).errors, [
    'spec.maxExpirationSeconds: Invalid value: 90000: must be in the range [3600, 86400]',
  ])
})

function proven(pair: KeyObject, signature: Buffer): object {
  const { stubPKCS10Request: _, ...spec } = body.spec
  return {
    ...body,
    spec: { ...spec, pkixPublicKey: base64(publicKeyDer(pair)), proofOfPossession: base64(signature) },
  }
}

test('a PodCertificateRequest requires a PKCS#10 request, or a public key with a signature over the uid of the pod', async () => {
  const uid = Buffer.from('uid-1')
  const ed = createKey('ed25519')
  const rsa = generateKeyPairSync('rsa', { modulusLength: 3072 }).privateKey
  const small = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const p224 = generateKeyPairSync('ec', { namedCurve: 'secp224r1' }).privateKey
  const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }
  const unproven = 'spec.proofOfPossession: Invalid value: could not verify proof-of-possession signature'
  const table: readonly (readonly [object, readonly string[]])[] = [
    [proven(key, sign('sha256', uid, key)), []],
    [proven(ed, sign(null, uid, ed)), []],
    [proven(rsa, sign('sha256', uid, { key: rsa, ...pss })), []],
    [proven(key, sign(null, uid, ed)), [unproven]],
    [proven(rsa, sign('sha256', uid, rsa)), [unproven]],
    [
      proven(small, uid),
      ['spec.pkixPublicKey: Invalid value: "2048-bit modulus": RSA keys must have modulus size 3072 or 4096'],
    ],
    [
      proven(p224, uid),
      ['spec.pkixPublicKey: Invalid value: "curve P-224": elliptic public keys must use curve P256 or P384'],
    ],
    [
      changed(body, 'spec.pkixPublicKey', 'YWJj'),
      ['spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set'],
    ],
    [
      changed(body, 'spec.stubPKCS10Request', 'YWJj'),
      ['spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR'],
    ],
    [changed(body, 'spec.stubPKCS10Request', forged()), ['spec.stubPKCS10Request: Invalid value: invalid signature']],
  ]
  for (const [object, errors] of table) assert.deepEqual((await create(object)).errors, errors)
})

function forged(): string {
  const der = Buffer.from(stub, 'base64')
  der[der.length - 2] = (der.at(-2) ?? 0) ^ 1
  return base64(der)
}

const HOUR_MS = 3_600_000
const nowMs = createVirtualClock().now()

function chainFor(holder: KeyObject, fromMs: number, toMs: number, dns: string[] = []): string {
  const plan = { subject: nameOf({ commonName: 'x' }), key: holder, usages: [], names: { dns } }
  return signCertificate({ ...plan, notBeforeMs: fromMs, notAfterMs: toMs }, { key }, createSeededRandom(1)).pem
}

function outcome(type: string, status = 'True'): object {
  return { type, status, reason: 'R', message: '', lastTransitionTime: timeOf(nowMs) }
}

function issued(part: object = {}): object {
  return {
    conditions: [outcome('Issued')],
    certificateChain: chainFor(key, nowMs, nowMs + 2 * HOUR_MS),
    notBefore: timeOf(nowMs),
    notAfter: timeOf(nowMs + 2 * HOUR_MS),
    beginRefreshAt: timeOf(nowMs + HOUR_MS),
    ...part,
  }
}

async function statusErrors(status: object, old: object = body): Promise<readonly string[]> {
  const given = Object.fromEntries(Object.entries(status).filter(([, value]) => value !== undefined))
  return (await update({ ...body, status: given }, old, 'status')).errors
}

test('a PodCertificateRequest gets one of the conditions Issued, Denied and Failed, and only once', async () => {
  assert.deepEqual(await statusErrors(issued()), [])
  assert.deepEqual(await statusErrors({ conditions: [outcome('Denied')] }), [])
  const after = { ...body, status: { conditions: [outcome('Failed')] } }
  assert.deepEqual(await statusErrors(issued(), after), [
    'status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed',
  ])
  assert.deepEqual(await statusErrors({ conditions: [outcome('Denied')], notAfter: timeOf(nowMs) }), [
    'status: Invalid value: non-condition status fields must be empty when denying or failing the PodCertificateRequest',
  ])
  assert.deepEqual(await statusErrors({ notAfter: timeOf(nowMs) }), [
    'status: Invalid value: status is immutable unless transitioning to "Issued", "Denied", or "Failed"',
  ])
  assert.deepEqual(
    await statusErrors({ conditions: [outcome('Issued'), outcome('Denied', 'False'), outcome('Odd')] }),
    [
      'status.conditions.[1].type: Invalid value: "Denied": There may be at most one condition with type "Issued", "Denied", or "Failed"',
      'status.conditions.[1].status: Unsupported value: "False": supported values: "True"',
      'status.conditions.[2].type: Unsupported value: "Odd": supported values: "Issued", "Denied", "Failed"',
    ],
  )
  assert.match((await update(changed(body, 'spec.podName', 'b'), body)).errors.join(), /^spec: .*: field is immutable$/)
})

test('a PodCertificateRequest requires an issued chain that matches the request', async () => {
  const chain = (text: string): object => issued({ certificateChain: text })
  const long = chainFor(key, nowMs, nowMs + 48 * HOUR_MS)
  const table: readonly (readonly [object, string])[] = [
    [chain(''), 'issued certificate chain must contain at least one certificate'],
    [chain('-----BEGIN KEY-----\nYWJj\n-----END KEY-----\n'), 'must consist entirely of CERTIFICATE PEM blocks'],
    [chain('-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n'), 'does not parse as valid X.509'],
    [chain(chainFor(createKey(), nowMs, nowMs + 2 * HOUR_MS)), 'was not issued to the requested public key'],
    [issued({ notBefore: undefined }), 'must be present and consistent with the issued certificate'],
    [issued({ beginRefreshAt: undefined }), 'must be present and in the range [notbefore+10min, notafter-10min]'],
    [issued({ notBefore: timeOf(nowMs + 1000) }), 'must be set to the NotBefore time encoded in the leaf certificate'],
    [issued({ notAfter: timeOf(nowMs) }), 'must be set to the NotAfter time encoded in the leaf certificate'],
    [issued({ beginRefreshAt: timeOf(nowMs) }), 'must be at least 10 minutes after status.notBefore'],
    [issued({ beginRefreshAt: timeOf(nowMs + 2 * HOUR_MS) }), 'must be at least 10 minutes before status.notAfter'],
    [
      issued({ certificateChain: long, notAfter: timeOf(nowMs + 48 * HOUR_MS) }),
      'status.certificateChain: Invalid value: 172800000000000: leaf certificate lifetime must be <= spec.maxExpirationSeconds (86400)',
    ],
    [
      chain(`${chainFor(key, nowMs, nowMs + 2 * HOUR_MS)}-----BEGIN KEY-----\nYWJj\n-----END KEY-----\n`),
      'must consist entirely of CERTFICATE PEM blocks',
    ],
    [chain(chainFor(key, nowMs, nowMs + 2 * HOUR_MS, ['a..b'])), `leaf certificate's DNSName should not contain '..'`],
  ]
  for (const [status, end] of table) {
    const errors = await statusErrors(status)
    assert.equal(errors.length, 1, end)
    assert.ok(errors[0]?.endsWith(end), errors.join())
  }
})

test('a PodCertificateRequest allows decisions only to users with permission for the signer', async () => {
  const calls: string[] = []
  const ask: Authorizer['authorize'] = (_user, access) => {
    calls.push(JSON.stringify(access))
    return { allowed: false, denied: false, reason: '' }
  }
  const guarded = tryRules(definePodCertificateRequest(ask))
  const denied = { ...body, status: { conditions: [outcome('Denied')] } }
  assert.deepEqual((await guarded.update(denied, body, 'status')).errors, [
    'spec.signerName: Forbidden: User "jane" is not permitted to "sign" for signer "example.com/signer"',
  ])
  assert.match(calls.join('\n'), /"example\.com\/signer"[^]*"example\.com\/\*"/)
  assert.deepEqual((await guarded.update(changed(body, 'metadata.labels', { a: 'b' }), body)).errors, [])
  const wrong = { ...body, status: { conditions: [outcome('Odd')] } }
  assert.match((await guarded.update(wrong, body, 'status')).errors.join(), /Unsupported value: "Odd"/)
})

test('a PodCertificateRequest prints its state', () => {
  const row = ['r', 'pod', 'sa', 'node', 'example.com/signer']
  assert.deepEqual(cells(body), [...row, 'Pending', '<none>'])
  const annotated = changed(body, 'spec.unverifiedUserAnnotations', { 'a.b/c': 'd' })
  assert.deepEqual(cells({ ...annotated, status: issued() }), [...row, 'Issued', 'a.b/c=d'])
})
