import assert from 'node:assert/strict'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { parseCertificate } from '#lib/x509/certificate.ts'
import { verifyChain } from '#lib/x509/chain.ts'

import { openLocalPki } from './local-pki.ts'

const DAY_MS = 24 * 3600 * 1000

async function folderFor(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-pki-'))
  t.after(() => rm(folder, { recursive: true }))
  return folder
}

describe('local pki', () => {
  it('makes everything once, for its owner only, and opens the same again', async (t) => {
    const options = {
      folder: join(await folderFor(t), 'pki'),
      hosts: ['127.0.0.1', 'localhost'],
      clock: createVirtualClock(),
      random: createSeededRandom(1),
    }
    const first = await openLocalPki(options)
    const second = await openLocalPki(options)
    assert.deepEqual(
      [second.apiServer, second.admin, second.serviceAccountKey],
      [first.apiServer, first.admin, first.serviceAccountKey],
    )
    for (const name of ['ca.key', 'admin.key', 'sa.key'])
      assert.equal((await stat(join(options.folder, name))).mode & 0o777, 0o600)
    const admin = parseCertificate(first.admin.certificate)
    assert.deepEqual([admin.subject.commonName, admin.subject.organizations], ['kubernetes-admin', ['system:masters']])
    const trust = { roots: [first.ca.certificate], nowMs: options.clock.now(), usage: 'client auth' as const }
    assert.equal(verifyChain(admin, trust).length > 0, true)
    assert.throws(() => verifyChain(admin, { ...trust, roots: [first.frontProxyCa.certificate] }))
  })

  it('renews what nears its end, also after a year switched off, and what lacks a name', async (t) => {
    const clock = createVirtualClock()
    const options = { folder: await folderFor(t), hosts: ['127.0.0.1'], clock, random: createSeededRandom(1) }
    const first = await openLocalPki(options)
    await clock.advance(400 * DAY_MS)
    const later = await openLocalPki(options)
    assert.notEqual(later.apiServer.certificate, first.apiServer.certificate)
    assert.equal(later.ca.certificatePem, first.ca.certificatePem)
    const renamed = await openLocalPki({ ...options, hosts: ['127.0.0.1', 'api.example.com'] })
    assert.deepEqual(parseCertificate(renamed.apiServer.certificate).names.dns, ['api.example.com'])
    assert.equal(renamed.admin.certificate, later.admin.certificate)
  })
})
