import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { createSeededRandom } from '#lib/random.ts'

import { createAtRest } from './at-rest.ts'
import { defaultEncryption, type EncryptionConfig, type ProviderConfig } from './config.ts'
import { testServices } from './kms-plugin.fixture.ts'
import { openAtRest } from './providers.ts'
import type { EncryptionKey } from './transformer.ts'

const random = createSeededRandom(1)
const key = (name: string, fill: number): EncryptionKey => ({ name, secret: Buffer.alloc(32, fill) })
const secrets = { group: '', resource: 'secrets' }
const plain: ProviderConfig = { type: 'identity' }
const aes = (type: 'aesgcm' | 'aescbc', ...keys: EncryptionKey[]): ProviderConfig => ({ type, keys })
const config = (...providers: ProviderConfig[]): EncryptionConfig => ({
  resources: [{ resources: ['secrets', 'widgets.example.com', '*.apps'], providers }],
})
const SERVICES = testServices()

describe('encryption at rest', () => {
  for (const type of ['aesgcm', 'aescbc'] as const) {
    it(`encrypts with ${type}, decrypts the result, and reveals nothing of the value`, () => {
      const resting = createAtRest(config(aes(type, key('k1', 1))), random).resting(secrets)
      const sealed = resting.seal('/registry/secrets/a/b', Buffer.from('canary'))
      assert.ok(sealed.toString('latin1').startsWith(`k8s:enc:${type}:v1:k1:`))
      assert.equal(sealed.includes('canary'), false)
      assert.equal(Buffer.from(resting.open('/registry/secrets/a/b', sealed)).toString(), 'canary')
      assert.notDeepEqual(resting.seal('/registry/secrets/a/b', Buffer.from('canary')), sealed)
    })
  }

  it('rejects a value that was changed, moved to another key, or encrypted with another key of the same name', () => {
    const resting = createAtRest(config(aes('aesgcm', key('k1', 1))), random).resting(secrets)
    const sealed = resting.seal('/a', Buffer.from('canary'))
    const flipped = Buffer.from(sealed)
    flipped[flipped.length - 20]! ^= 1
    const other = createAtRest(config(aes('aesgcm', key('k1', 2))), random).resting(secrets)
    assert.throws(() => resting.open('/a', flipped), { code: 'corrupt' })
    assert.throws(() => resting.open('/b', sealed), { code: 'corrupt', message: /"\/b"/ })
    assert.throws(() => other.open('/a', sealed), { code: 'corrupt' })
    assert.throws(() => resting.open('/a', sealed.subarray(0, 25)), { code: 'corrupt' })
  })

  it('rotates keys without downtime: old values are readable, new ones use the new key, stale ones are detected', async () => {
    const atRest = await openAtRest(config(aes('aesgcm', key('old', 1))), SERVICES)
    const resting = atRest.resting(secrets)
    const old = resting.seal('/a', Buffer.from('one'))
    await atRest.reload(config(aes('aesgcm', key('new', 2), key('old', 1))))
    assert.equal(Buffer.from(resting.open('/a', old)).toString(), 'one')
    assert.equal(resting.isStale(old), true)
    const fresh = resting.seal('/a', Buffer.from('one'))
    assert.equal(resting.isStale(fresh), false)
    await atRest.reload(config(aes('aesgcm', key('new', 2))))
    assert.throws(() => resting.open('/a', old), { code: 'corrupt', message: /no provider .* opens that; add its key/ })
  })

  it('reads values from before it was enabled, and after it was disabled', async () => {
    const atRest = await openAtRest(config(aes('aesgcm', key('k', 1)), plain), SERVICES)
    const resting = atRest.resting(secrets)
    const value = Buffer.from('{"kind":"Secret"}')
    assert.deepEqual(Buffer.from(resting.open('/a', value)), value)
    assert.equal(resting.isStale(value), true)
    const sealed = resting.seal('/a', value)
    await atRest.reload(config(plain, aes('aesgcm', key('k', 1))))
    assert.deepEqual(Buffer.from(resting.open('/a', sealed)), value)
    assert.deepEqual(resting.seal('/a', value), value)
    assert.equal(resting.isStale(sealed), true)
  })

  it('rejects unencrypted values if the configuration has no identity provider', () => {
    const resting = createAtRest(config(aes('aesgcm', key('k', 1))), random).resting(secrets)
    assert.throws(() => resting.open('/a', Buffer.from('{}')), { code: 'corrupt', message: /is not sealed/ })
    const unnamed = createAtRest(config(), random).resting({ group: '', resource: 'pods' })
    assert.equal(Buffer.from(unnamed.open('/a', Buffer.from('{}'))).toString(), '{}')
  })

  it('tries every provider with a matching prefix, because two may share a key name', () => {
    const old = createAtRest(config(aes('aescbc', key('k', 1))), random).resting(secrets)
    const sealed = old.seal('/a', Buffer.from('one'))
    const both = createAtRest(
      config(aes('aesgcm', key('k', 2)), aes('aescbc', key('k', 2)), aes('aescbc', key('k', 1))),
      random,
    )
    assert.equal(Buffer.from(both.resting(secrets).open('/a', sealed)).toString(), 'one')
  })

  it('encrypts only the configured resources', () => {
    const atRest = createAtRest(config(aes('aesgcm', key('k', 1))), random)
    const seals = (group: string, resource: string): boolean =>
      atRest.resting({ group, resource }).seal('/a', Buffer.from('x')).length > 1
    assert.deepEqual(
      [seals('', 'secrets'), seals('example.com', 'widgets'), seals('apps', 'deployments')],
      [true, true, true],
    )
    assert.deepEqual([seals('', 'pods'), seals('example.com', 'secrets')], [false, false])
  })

  it("decrypts values that openssl encrypted in upstream's format", (t) => {
    let sealed: Buffer
    try {
      const iv = Buffer.alloc(16, 7)
      const args = ['enc', '-aes-256-cbc', '-K', Buffer.alloc(32, 1).toString('hex'), '-iv', iv.toString('hex')]
      sealed = Buffer.concat([
        Buffer.from('k8s:enc:aescbc:v1:k1:'),
        iv,
        execFileSync('openssl', args, { input: 'from elsewhere' }),
      ])
    } catch (error) {
      return t.skip(`openssl is not installed: ${(error as Error).message}`)
    }
    const resting = createAtRest(config(aes('aescbc', key('k1', 1))), random).resting(secrets)
    assert.equal(Buffer.from(resting.open('/a', sealed)).toString(), 'from elsewhere')
  })
})

describe('default encryption', () => {
  it('creates its key once, readable by its owner only, and rejects an unusable key file', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'hyperkube-key-'))
    t.after(() => rm(folder, { recursive: true }))
    const file = join(folder, 'deep', 'encryption.key')
    const first = await defaultEncryption(file, random)
    assert.equal((await stat(file)).mode & 0o777, 0o600)
    assert.deepEqual(await defaultEncryption(file, random), first)
    assert.equal((await readFile(file, 'utf8')).trim().length, 44)
  })

  it('encrypts with secretbox, and reads AES-GCM values and marks them as stale', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'hyperkube-key-'))
    t.after(() => rm(folder, { recursive: true }))
    const file = join(folder, 'encryption.key')
    const open = await openAtRest(await defaultEncryption(file, random), SERVICES)
    t.after(() => open.close())
    const now = open.resting(secrets)
    const sealed = now.seal('/a', Buffer.from('new'))
    assert.ok(sealed.toString('latin1').startsWith('k8s:enc:secretbox:v1:hyperkube:'))
    assert.equal(Buffer.from(now.open('/a', sealed)).toString(), 'new')
    assert.equal(now.isStale(sealed), false)
    const secret = Buffer.from(await readFile(file, 'utf8'), 'base64')
    const before = createAtRest(config(aes('aesgcm', { name: 'hyperkube', secret })), random).resting(secrets)
    const old = before.seal('/a', Buffer.from('old'))
    assert.equal(Buffer.from(now.open('/a', old)).toString(), 'old')
    assert.equal(now.isStale(old), true)
    assert.throws(() => now.open('/b', old), /cannot be opened with the encryption key "hyperkube"/)
  })
})
