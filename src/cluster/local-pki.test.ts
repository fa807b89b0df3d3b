import assert from 'node:assert/strict'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'
import { createSeededRandom } from '#lib/random.ts'
import { parseCertificate } from '#lib/x509/certificate.ts'
import { verifyChain } from '#lib/x509/chain.ts'

import { keepFresh, openLocalPki, pkiFolder } from './local-pki.ts'

const DAY_MS = 24 * 3600 * 1000

async function folderFor(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-pki-'))
  t.after(() => rm(folder, { recursive: true }))
  return folder
}

describe('PKI of a local cluster', () => {
  it('creates all keys and certificates once with mode 0600, and reuses them', async (t) => {
    const folder = join(await folderFor(t), 'pki')
    const options = {
      files: pkiFolder(folder),
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
      assert.equal((await stat(join(folder, name))).mode & 0o777, 0o600)
    const admin = parseCertificate(first.admin.certificate)
    assert.deepEqual([admin.subject.commonName, admin.subject.organizations], ['kubernetes-admin', ['system:masters']])
    const trust = { roots: [first.ca.certificate], nowMs: options.clock.now(), usage: 'client auth' as const }
    assert.equal(verifyChain(admin, trust).length > 0, true)
    assert.throws(() => verifyChain(admin, { ...trust, roots: [first.frontProxyCa.certificate] }))
  })

  it('renews expiring certificates, even after a year offline, and those that lack a name', async (t) => {
    const clock = createVirtualClock()
    const options = { files: pkiFolder(await folderFor(t)), hosts: ['127.0.0.1'], clock, random: createSeededRandom(1) }
    const first = await openLocalPki(options)
    await clock.advance(400 * DAY_MS)
    const later = await openLocalPki(options)
    assert.notEqual(later.apiServer.certificate, first.apiServer.certificate)
    assert.equal(later.ca.certificatePem, first.ca.certificatePem)
    const renamed = await openLocalPki({ ...options, hosts: ['127.0.0.1', 'api.example.com'] })
    assert.deepEqual(parseCertificate(renamed.apiServer.certificate).names.dns, ['api.example.com'])
    assert.equal(renamed.admin.certificate, later.admin.certificate)
  })
  it('renews certificates at runtime for two years, and passes new ones to listeners', async () => {
    const clock = createVirtualClock()
    const kept = new Map<string, string>()
    const files = {
      read: (name: string) => Promise.resolve(kept.get(name)),
      write: (name: string, text: string) => Promise.resolve(void kept.set(name, text)),
    }
    const log = createLog({ clock, stream: { write: (_text: string, done: () => void) => done() } }).logger
    const options = { files, hosts: ['127.0.0.1'], clock, random: createSeededRandom(1), log }
    const renewed: string[] = []
    const pki = await openLocalPki(options)
    const rounds = keepFresh(options, pki, async ({ admin }) => void renewed.push(admin.certificate))
    for (let day = 0; day < 730; day += 10) {
      await clock.advance(10 * DAY_MS)
      for (const name of ['apiserver', 'admin', 'front-proxy-client'])
        assert.ok(
          parseCertificate(kept.get(`${name}.crt`) ?? '').notAfterMs > clock.now() + 90 * DAY_MS,
          `${name}, ${day}`,
        )
    }
    await rounds.stop()
    assert.equal(renewed.length, 2)
    assert.equal(renewed[1], kept.get('admin.crt'))
    assert.equal(kept.get('ca.crt'), pki.ca.certificatePem)
  })
})
