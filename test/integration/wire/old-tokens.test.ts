/**
 * Tests legacy service account tokens in Secrets: the server records their last use and warns about auto-generated
 * ones.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, it } from 'node:test'

import { createSigner } from '#lib/jwt/token.ts'
import { parsePrivateKey } from '#lib/x509/key.ts'

import { ofOurs, PATCHES, startWire, type Wire } from './server.ts'

let wire: Wire
before(async () => {
  wire = await startWire()
})
after(() => wire.stop())

const WARNING =
  '299 - "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens."'
const LAST_USED = 'kubernetes.io/legacy-token-last-used'

it(
  'legacy tokens record the day of their use before the response, and cause a warning if they are auto-generated',
  ofOurs,
  async () => {
    const ns = await wire.namespace()
    const core = `/api/v1/namespaces/${ns}`
    const { metadata } = await wire.must('GET', `${core}/serviceaccounts/default`)
    const claim = 'kubernetes.io/serviceaccount/'
    const token = createSigner(parsePrivateKey(readFileSync(join(wire.dir, 'sa.key'), 'utf8'))).sign({
      iss: 'kubernetes/serviceaccount',
      sub: `system:serviceaccount:${ns}:default`,
      [`${claim}namespace`]: ns,
      [`${claim}secret.name`]: 'kept',
      [`${claim}service-account.name`]: 'default',
      [`${claim}service-account.uid`]: metadata.uid,
    })
    await wire.must('POST', `${core}/secrets`, {
      metadata: { name: 'kept', annotations: { 'kubernetes.io/service-account.name': 'default' } },
      type: 'kubernetes.io/service-account-token',
      data: { token: Buffer.from(token).toString('base64') },
    })
    const use = async (): Promise<{ status: number; warnings: string[] }> => {
      const got = await wire.request('GET', '/api', { headers: { authorization: `Bearer ${token}` }, as: 'nobody' })
      return { status: got.status, warnings: got.all('warning') }
    }
    const secret = (): Promise<{ metadata: { labels?: Record<string, string>; resourceVersion: string } }> =>
      wire.must('GET', `${core}/secrets/kept`)
    assert.deepEqual(await use(), { status: 200, warnings: [] })
    const marked = await secret()
    assert.match(marked.metadata.labels?.[LAST_USED] ?? '', /^\d{4}-\d\d-\d\d$/)
    await use()
    assert.equal((await secret()).metadata.resourceVersion, marked.metadata.resourceVersion)
    const listed = { secrets: [{ name: 'kept' }] }
    await wire.must('PATCH', `${core}/serviceaccounts/default`, listed, { headers: PATCHES.merge })
    assert.deepEqual(await use(), { status: 200, warnings: [WARNING] })
    const labels = { 'kubernetes.io/legacy-token-invalid-since': '2026-01-01', [LAST_USED]: null }
    await wire.must('PATCH', `${core}/secrets/kept`, { metadata: { labels } }, { headers: PATCHES.merge })
    assert.deepEqual(await use(), { status: 401, warnings: [] })
    assert.match((await secret()).metadata.labels?.[LAST_USED] ?? '', /^\d{4}-\d\d-\d\d$/)
  },
)
