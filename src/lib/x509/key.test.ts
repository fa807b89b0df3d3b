import assert from 'node:assert/strict'
import { createPublicKey } from 'node:crypto'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { createVirtualClock } from '../clock.ts'
import { createSeededRandom } from '../random.ts'
import { createAuthority } from './authority.ts'
import { X509Error } from './error.ts'
import { checkKey, createKey, generateKey, isSameKey, keyToPem, parsePrivateKey, parsePublicKeys } from './key.ts'
import { encodePem, parsePem } from './pem.ts'

const rsa = await generateKey('rsa-2048')

describe('keys in PEM', () => {
  it('are parsed from PKCS#8, SEC1 and PKCS#1', () => {
    const ec = createKey()
    const forms: [typeof ec, string][] = [
      [ec, keyToPem(ec)],
      [ec, ec.export({ format: 'pem', type: 'sec1' })],
      [ec, `-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n${keyToPem(ec)}`],
      [rsa, rsa.export({ format: 'pem', type: 'pkcs1' })],
      [rsa, keyToPem(rsa)],
    ]
    for (const type of ['ecdsa-p384', 'ed25519'] as const) {
      const key = createKey(type)
      forms.push([key, keyToPem(key)])
    }
    for (const [key, pem] of forms) {
      assert.ok(isSameKey(parsePrivateKey(pem), key))
      assert.ok(isSameKey(parsePrivateKey(pem.replaceAll('\n', '\r\n')), key))
    }
  })

  it('are parsed from a text with public keys, private keys and certificates mixed', () => {
    const authority = createAuthority(
      { commonName: 'ca' },
      { clock: createVirtualClock(), random: createSeededRandom(1) },
    )
    const ec = createKey()
    const found = parsePublicKeys(keyToPem(createPublicKey(rsa)) + authority.certificatePem + keyToPem(ec))
    assert.deepEqual(
      found.map((key) => key.type),
      ['public', 'public', 'public'],
    )
    assert.ok(isSameKey(found[1]!, authority.certificate.publicKey))
    assert.ok(isSameKey(found[2]!, ec))
  })

  it('are rejected with a reason if they cannot be used', () => {
    const encrypted = createKey().export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' })
    const old = rsa.export({ format: 'pem', type: 'pkcs1', cipher: 'aes-256-cbc', passphrase: 'x' })
    assert.throws(() => parsePrivateKey(encrypted), /encrypted/)
    assert.throws(() => parsePrivateKey(old), /encrypted/)
    assert.throws(() => parsePrivateKey('nothing'), /no private key/)
    assert.throws(() => parsePublicKeys(''), /no key/)
    assert.throws(() => parsePrivateKey(encodePem('PRIVATE KEY', Buffer.from('junk'))), X509Error)
  })

  it('are rejected if they are weak or of an unusual type', async () => {
    const { generateKeyPairSync } = await import('node:crypto')
    for (const key of [
      generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey,
      generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey,
      generateKeyPairSync('x25519').publicKey,
    ]) {
      assert.throws(() => checkKey(key), /not accepted/)
    }
  })
})

describe('PEM blocks', () => {
  it('round-trip', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.lorem(), (bytes, noise) => {
        const block = encodePem('X Y', Buffer.from(bytes))
        const found = parsePem(`${noise}\n${block}${noise}\n${block}`)
        assert.equal(found.length, 2)
        assert.deepEqual(found[1]?.bytes, Buffer.from(bytes))
        assert.equal(found[0]?.label, 'X Y')
        assert.equal(found[0]?.text, block)
      }),
    )
  })

  const refused: [string, string][] = [
    ['without an end', '-----BEGIN A-----\nAAAA\n'],
    ['with the end of another', '-----BEGIN A-----\nAAAA\n-----END B-----'],
    ['without a label', '-----BEGIN -----\n-----END -----'],
    ['with an unfinished label', '-----BEGIN A'],
    ['that is not base64', '-----BEGIN A-----\nAA$A\n-----END A-----'],
    ['with an incomplete base64 character', '-----BEGIN A-----\nAAA\n-----END A-----'],
  ]
  for (const [what, text] of refused)
    it(`are rejected: a block ${what}`, () => assert.throws(() => parsePem(text), X509Error))

  it('are rejected in linear time if they have many BEGIN lines', () => {
    assert.throws(() => parsePem('-----BEGIN A-----\n'.repeat(200_000)), X509Error)
  })
})
