import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { createSeededRandom } from '#lib/random.ts'

import { createAtRest } from './at-rest.ts'
import { defaultEncryption, parseEncryptionConfig } from './config.ts'

const random = createSeededRandom(1)
const key = (name: string, fill: number): { name: string; secret: string } => ({
  name,
  secret: Buffer.alloc(32, fill).toString('base64'),
})
const secrets = { group: '', resource: 'secrets' }
const config = (...providers: object[]): ReturnType<typeof parseEncryptionConfig> =>
  parseEncryptionConfig({
    kind: 'EncryptionConfiguration',
    apiVersion: 'apiserver.config.k8s.io/v1',
    resources: [{ resources: ['secrets', 'widgets.example.com', '*.apps'], providers }],
  })

describe('encryption at rest', () => {
  for (const type of ['aesgcm', 'aescbc']) {
    it(`seals with ${type}, opens it again, and shows nothing of the value`, () => {
      const resting = createAtRest(config({ [type]: { keys: [key('k1', 1)] } }), random).resting(secrets)
      const sealed = resting.seal('/registry/secrets/a/b', Buffer.from('canary'))
      assert.ok(sealed.toString('latin1').startsWith(`k8s:enc:${type}:v1:k1:`))
      assert.equal(sealed.includes('canary'), false)
      assert.equal(Buffer.from(resting.open('/registry/secrets/a/b', sealed)).toString(), 'canary')
      assert.notDeepEqual(resting.seal('/registry/secrets/a/b', Buffer.from('canary')), sealed)
    })
  }

  it('refuses a value that was changed, moved to another key, or sealed with another key of that name', () => {
    const resting = createAtRest(config({ aesgcm: { keys: [key('k1', 1)] } }), random).resting(secrets)
    const sealed = resting.seal('/a', Buffer.from('canary'))
    const flipped = Buffer.from(sealed)
    flipped[flipped.length - 20]! ^= 1
    const other = createAtRest(config({ aesgcm: { keys: [key('k1', 2)] } }), random).resting(secrets)
    assert.throws(() => resting.open('/a', flipped), { code: 'corrupt' })
    assert.throws(() => resting.open('/b', sealed), { code: 'corrupt', message: /"\/b"/ })
    assert.throws(() => other.open('/a', sealed), { code: 'corrupt' })
    assert.throws(() => resting.open('/a', sealed.subarray(0, 25)), { code: 'corrupt' })
  })

  it('changes keys without downtime: old values open, new ones use the new key, stale ones are known', () => {
    const atRest = createAtRest(config({ aesgcm: { keys: [key('old', 1)] } }), random)
    const resting = atRest.resting(secrets)
    const old = resting.seal('/a', Buffer.from('one'))
    atRest.reload(config({ aesgcm: { keys: [key('new', 2), key('old', 1)] } }))
    assert.equal(Buffer.from(resting.open('/a', old)).toString(), 'one')
    assert.equal(resting.isStale(old), true)
    const fresh = resting.seal('/a', Buffer.from('one'))
    assert.equal(resting.isStale(fresh), false)
    atRest.reload(config({ aesgcm: { keys: [key('new', 2)] } }))
    assert.throws(() => resting.open('/a', old), { code: 'corrupt', message: /no provider .* opens that; add its key/ })
  })

  it('reads values from before encryption was switched on, and after it was switched off', () => {
    const atRest = createAtRest(config({ aesgcm: { keys: [key('k', 1)] } }, { identity: {} }), random)
    const resting = atRest.resting(secrets)
    const plain = Buffer.from('{"kind":"Secret"}')
    assert.deepEqual(Buffer.from(resting.open('/a', plain)), plain)
    assert.equal(resting.isStale(plain), true)
    const sealed = resting.seal('/a', plain)
    atRest.reload(config({ identity: {} }, { aesgcm: { keys: [key('k', 1)] } }))
    assert.deepEqual(Buffer.from(resting.open('/a', sealed)), plain)
    assert.deepEqual(resting.seal('/a', plain), plain)
    assert.equal(resting.isStale(sealed), true)
  })

  it('seals the resources it names and no others', () => {
    const atRest = createAtRest(config({ aesgcm: { keys: [key('k', 1)] } }), random)
    const seals = (group: string, resource: string): boolean =>
      atRest.resting({ group, resource }).seal('/a', Buffer.from('x')).length > 1
    assert.deepEqual(
      [seals('', 'secrets'), seals('example.com', 'widgets'), seals('apps', 'deployments')],
      [true, true, true],
    )
    assert.deepEqual([seals('', 'pods'), seals('example.com', 'secrets')], [false, false])
  })

  it('opens what openssl sealed in upstream format', (t) => {
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
    const resting = createAtRest(config({ aescbc: { keys: [key('k1', 1)] } }), random).resting(secrets)
    assert.equal(Buffer.from(resting.open('/a', sealed)).toString(), 'from elsewhere')
  })
})

describe('encryption configuration', () => {
  const bad: [string, unknown, RegExp][] = [
    ['another kind', { kind: 'Pod' }, /Not an EncryptionConfiguration/],
    ['no resources', { kind: 'EncryptionConfiguration', apiVersion: 'v1' }, /resources: must be a list/],
  ]
  for (const [what, document, message] of bad)
    it(`refuses ${what}`, () => assert.throws(() => parseEncryptionConfig(document), { message }))

  const badProviders: [string, object, RegExp][] = [
    [
      'a short key',
      { aesgcm: { keys: [{ name: 'k', secret: 'YQ==' }] } },
      /resources\[0\]\.providers\[0\]\.aesgcm\.keys\[0\]\.secret: .* got 1/,
    ],
    ['a key without a name', { aesgcm: { keys: [{ secret: 'YQ==' }] } }, /keys\[0\]\.name/],
    ['no keys', { aesgcm: { keys: [] } }, /keys: Required value/],
    ['two providers in one', { aesgcm: {}, identity: {} }, /exactly one provider/],
    ['one that is not supported', { kms: {} }, /kms: this provider is not supported/],
  ]
  for (const [what, provider, message] of badProviders)
    it(`refuses ${what}`, () => assert.throws(() => config(provider), { message }))

  it('makes a key of its own once, for its owner only, and refuses a broken one', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'hyperkube-key-'))
    t.after(() => rm(folder, { recursive: true }))
    const file = join(folder, 'deep', 'encryption.key')
    const first = await defaultEncryption(file, random)
    assert.equal((await stat(file)).mode & 0o777, 0o600)
    assert.deepEqual(await defaultEncryption(file, random), first)
    assert.equal((await readFile(file, 'utf8')).trim().length, 44)
  })
})
