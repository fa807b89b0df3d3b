import assert from 'node:assert/strict'
import { test } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { createKey } from '#lib/x509/key.ts'
import { encodePem } from '#lib/x509/pem.ts'
import { createRequest } from '#lib/x509/request.ts'

import { changed, tryRules } from '../rules.fixture.ts'
import { defineCertificateSigningRequest } from './certificatesigningrequest.ts'

const certificateSigningRequest = defineCertificateSigningRequest()
const { create, update, cells } = tryRules(certificateSigningRequest)

const base64 = (text: string): string => Buffer.from(text).toString('base64')

const { pem, der } = createRequest({ commonName: 'jane' }, createKey())
const tools = { clock: createVirtualClock(), random: createSeededRandom(1) }
const certificate = base64(createAuthority({ commonName: 'ca' }, tools).certificatePem)

const body = {
  metadata: { name: 'jane' },
  spec: { request: base64(pem), signerName: 'example.com/signer', usages: ['client auth'], username: 'root' },
}

const NOW = '2026-01-01T00:00:00Z'

const condition = (type: string, status = 'True'): object => ({
  type,
  status,
  lastUpdateTime: NOW,
  lastTransitionTime: NOW,
})

test('a CertificateSigningRequest records the requesting user, and has no decision on creation', async () => {
  const { object, errors } = await create({ ...body, status: { conditions: [condition('Approved')] } })
  assert.deepEqual(errors, [])
  const { username, uid, groups, extra } = object.spec
  assert.deepEqual(
    { username, uid, groups, extra },
    {
      username: 'jane',
      uid: 'u1',
      groups: ['dev', 'system:authenticated'],
      extra: { k: ['v'] },
    },
  )
  assert.deepEqual(object.status, {})
})

test('a CertificateSigningRequest rejects invalid requests', async () => {
  const tampered = Buffer.from(der)
  tampered[tampered.length - 3] = (tampered.at(-3) ?? 0) ^ 1
  const forged = base64(encodePem('CERTIFICATE REQUEST', tampered))
  const request = (text: string): string => `spec.request: Invalid value: "${text}":`
  const table: readonly (readonly [string, unknown, readonly string[]])[] = [
    ['spec.request', certificate, [`${request(certificate)} PEM block type must be CERTIFICATE REQUEST`]],
    ['spec.request', base64('text'), [`${request(base64('text'))} PEM block type must be CERTIFICATE REQUEST`]],
    ['spec.request', forged, [`${request(forged)} x509: ECDSA verification failure`]],
    ['spec.usages', [], ['spec.usages: Required value']],
    ['spec.usages', ['any', 'any'], ['spec.usages[1]: Duplicate value: "any"']],
    [
      'spec.signerName',
      'signer',
      [
        `spec.signerName: Invalid value: "signer": must be a fully qualified domain and path of the form 'example.com/signer-name'`,
      ],
    ],
    [
      'spec.signerName',
      'kubernetes.io/legacy-unknown',
      [
        'spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not allowed via this API version',
      ],
    ],
    [
      'spec.expirationSeconds',
      599,
      ['spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
  const [unknown] = (await create(changed(body, 'spec.usages', ['cooking']))).errors
  assert.match(
    unknown ?? '',
    /^spec\.usages\[0\]: Unsupported value: "cooking": supported values: "any", "cert sign", /,
  )
})

test('a CertificateSigningRequest ignores changes of spec and status without a subresource', async () => {
  const next = { ...changed(body, 'spec.usages', ['any']), status: { certificate } }
  const { object, errors } = await update(next, body)
  assert.deepEqual(errors, [])
  assert.deepEqual([object.spec.usages, object.status], [['client auth'], {}])
})

test('a CertificateSigningRequest accepts only conditions in updates of the approval subresource', async () => {
  const next = { ...body, status: { conditions: [{ type: 'Approved', status: 'True' }], certificate } }
  const { object, errors } = await update(next, body, 'approval')
  assert.deepEqual(errors, [])
  assert.deepEqual(object.status, { conditions: [condition('Approved')] })
})

test('a CertificateSigningRequest has only one of Approved and Denied, with status True, and keeps it', async () => {
  const decide = async (conditions: object[], old: object[] = []): Promise<readonly string[]> =>
    (await update({ ...body, status: { conditions } }, { ...body, status: { conditions: old } }, 'approval')).errors
  assert.deepEqual(await decide([condition('Approved'), condition('Denied')]), [
    'status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive',
  ])
  assert.deepEqual(await decide([condition('Denied', 'False')]), [
    'status.conditions[0].status: Unsupported value: "False": supported values: "True"',
  ])
  assert.deepEqual(await decide([condition('A', ''), condition('')]), [
    'status.conditions[0].status: Required value',
    'status.conditions[1].type: Required value',
  ])
  assert.deepEqual(await decide([], [condition('Approved')]), [
    'status.conditions: Forbidden: updates may not remove a condition of type "Approved"',
  ])
})

test('a CertificateSigningRequest accepts a certificate once, and no decision, in updates of the status subresource', async () => {
  const approved = { ...body, status: { conditions: [condition('Approved')] } }
  const issued = changed(approved, 'status.certificate', certificate)
  assert.deepEqual((await update(issued, approved, 'status')).errors, [])
  const { errors } = await update({ ...body, status: { conditions: [condition('Denied')] } }, body, 'status')
  assert.deepEqual(errors, ['status.conditions: Forbidden: updates may not add a condition of type "Denied"'])
  const reset = 'status.certificate: Forbidden: updates may not modify existing certificate content'
  const twice = base64(Buffer.from(certificate, 'base64').toString().repeat(2))
  assert.deepEqual((await update(changed(issued, 'status.certificate', twice), issued, 'status')).errors, [reset])
  assert.deepEqual((await update(changed(issued, 'status.certificate', base64(pem)), issued, 'status')).errors, [
    'status.certificate: Invalid value: "<certificate data>": only CERTIFICATE PEM blocks are allowed, found "CERTIFICATE REQUEST"',
    reset,
  ])
  assert.deepEqual((await update(changed(approved, 'status.certificate', base64('x')), approved, 'status')).errors, [
    'status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block',
  ])
})

test('a CertificateSigningRequest prints its condition', () => {
  assert.deepEqual(cells(body), ['jane', '<unknown>', 'example.com/signer', 'root', '<none>', 'Pending'])
  const failed = { conditions: [condition('Approved'), condition('Failed')], certificate }
  const shown = cells({ ...changed(body, 'spec.expirationSeconds', 3600 * 24), status: failed })
  assert.deepEqual(shown.slice(4), ['24h', 'Approved,Failed,Issued'])
  assert.equal(certificateSigningRequest.fieldSelectors?.['spec.signerName']?.(body as never), 'example.com/signer')
})
