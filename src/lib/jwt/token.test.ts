import assert from 'node:assert/strict'
import { createHmac, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { createVirtualClock } from '../clock.ts'
import { createKey } from '../x509/key.ts'
import { JwtError } from './error.ts'
import { discoveryDocument, keyIdOf, parseKeySet, toKeySet, verifyingKey } from './key.ts'
import { createSigner, readUnverified, verifyToken } from './token.ts'

const clock = createVirtualClock()
const nowSeconds = clock.now() / 1000
const privateKey = createKey()
const rsa = createKey('rsa-2048')
const key = verifyingKey(privateKey)
const signer = createSigner(privateKey)
const options = { keys: [key], clock }

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const fails = (code: string) => (error: unknown) => error instanceof JwtError && error.code === code

describe('JSON web tokens', () => {
  it('are signed and verified with every kind of key', () => {
    const claims = { iss: 'me', sub: 'system:serviceaccount:a:b', nested: { n: 1 } }
    const kinds: [ReturnType<typeof createKey>, string][] = [
      [privateKey, 'ES256'],
      [createKey('ecdsa-p384'), 'ES384'],
      [generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey, 'ES512'],
      [rsa, 'RS256'],
      [createKey('ed25519'), 'EdDSA'],
    ]
    for (const [one, alg] of kinds) {
      const made = createSigner(one)
      const token = made.sign(claims)
      const verified = verifyToken(token, { keys: [verifyingKey(createPublicKey(one))], clock })
      assert.deepEqual(verified.claims, claims)
      assert.deepEqual({ ...verified.header }, { alg, kid: keyIdOf(one) })
    }
  })

  it('are verified with other RSA algorithms', () => {
    for (const [alg, hash, options2] of [
      ['RS384', 'sha384', {}],
      ['RS512', 'sha512', {}],
      ['PS256', 'sha256', { padding: 6, saltLength: 32 }],
      ['PS384', 'sha384', { padding: 6, saltLength: 48 }],
    ] as const) {
      const input = `${part({ alg })}.${part({ a: 1 })}`
      const signature = sign(hash, Buffer.from(input), { key: rsa, ...options2 })
      verifyToken(`${input}.${signature.toString('base64url')}`, { keys: [verifyingKey(rsa)], clock })
    }
  })

  it('are rejected outside of their validity, with leeway', async () => {
    const token = (claims: object): string => signer.sign({ ...claims })
    const check = (claims: object): unknown => verifyToken(token(claims), options)
    check({ exp: nowSeconds + 1, nbf: nowSeconds, iat: nowSeconds })
    check({ exp: nowSeconds - 59.5 })
    assert.throws(() => check({ exp: nowSeconds - 61 }), fails('expired'))
    check({ nbf: nowSeconds + 59 })
    assert.throws(() => check({ nbf: nowSeconds + 61 }), fails('not-yet-valid'))
    assert.throws(() => check({ iat: nowSeconds + 61 }), fails('not-yet-valid'))
    for (const exp of ['soon', null, {}, true]) assert.throws(() => check({ exp }), fails('malformed'))
    assert.throws(() => verifyToken(token({}), { ...options, requireExpiry: true }), fails('expired'))
    const strict = createVirtualClock(clock.now())
    const short = token({ exp: nowSeconds + 10 })
    verifyToken(short, { ...options, clock: strict, leewayMs: 0 })
    await strict.advance(10_001)
    assert.throws(() => verifyToken(short, { ...options, clock: strict, leewayMs: 0 }), fails('expired'))
  })

  it('are rejected for another issuer or audience', () => {
    const token = signer.sign({ iss: 'me', aud: ['a', 'b'] })
    assert.deepEqual(verifyToken(token, { ...options, issuers: ['x', 'me'], audiences: ['b', 'c'] }).audiences, [
      'a',
      'b',
    ])
    assert.deepEqual(verifyToken(signer.sign({ aud: 'a' }), { ...options, audiences: ['a'] }).audiences, ['a'])
    assert.throws(() => verifyToken(token, { ...options, audiences: ['c'] }), fails('audience'))
    assert.throws(() => verifyToken(signer.sign({}), { ...options, audiences: ['c'] }), fails('audience'))
    assert.throws(() => verifyToken(token, { ...options, issuers: ['you'] }), fails('issuer'))
    assert.throws(() => verifyToken(signer.sign({}), { ...options, issuers: ['you'] }), fails('issuer'))
    assert.throws(() => verifyToken(signer.sign({ aud: [1] }), options), fails('malformed'))
  })

  it('are verified with the key of their key ID, or with each key if the ID is unknown or missing', () => {
    const others = Array.from({ length: 3 }, () => verifyingKey(createKey()))
    assert.equal(verifyToken(signer.sign({}), { ...options, keys: [...others, key] }).key, key)
    const renamed = verifyingKey(privateKey, 'renamed')
    assert.equal(verifyToken(signer.sign({}), { ...options, keys: [...others, renamed] }).key, renamed)
    const impostor = verifyingKey(createKey(), signer.kid)
    assert.throws(() => verifyToken(signer.sign({}), { ...options, keys: [impostor, renamed] }), fails('signature'))
    assert.throws(() => verifyToken(signer.sign({}), { ...options, keys: [] }), fails('signature'))
  })

  it('are rejected if the algorithm does not fit the key', () => {
    const body = part({ sub: 'root' })
    const pem = createPublicKey(rsa).export({ format: 'pem', type: 'spki' })
    const forged: [object, (input: string) => Buffer][] = [
      [{ alg: 'none' }, () => Buffer.from('x')],
      [{ alg: 'None' }, () => Buffer.from('x')],
      [{ alg: 'HS256' }, (input) => createHmac('sha256', pem).update(input).digest()],
      [{ alg: 'RS256' }, (input) => sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' })],
      [{ alg: 'ES384' }, (input) => sign('sha384', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' })],
      [{ alg: 'ES256' }, (input) => sign('sha256', Buffer.from(input), privateKey)],
      [{ alg: '__proto__' }, () => Buffer.from('x')],
    ]
    for (const [header, makeSignature] of forged) {
      const input = `${part(header)}.${body}`
      const token = `${input}.${makeSignature(input).toString('base64url')}`
      const keys = [verifyingKey(rsa), key]
      assert.throws(() => verifyToken(token, { keys, clock }), fails('signature'), JSON.stringify(header))
    }
    assert.throws(() => verifyToken(`${part({ alg: 'none' })}.${body}.`, options), fails('malformed'))
    assert.throws(
      () => verifyToken(`${part({ alg: 'ES256', crit: ['b64'], b64: false })}.${body}.eA`, options),
      fails('unsupported'),
    )
  })

  it('have only one valid encoding', () => {
    const token = signer.sign({ a: 1 })
    verifyToken(token, options)
    const [head, body, tail] = token.split('.') as [string, string, string]
    const last = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const sibling = last[last.indexOf(tail.at(-1)!) ^ 1]!
    for (const wrong of [
      `${tail.slice(0, -1)}${sibling}`,
      `${tail}=`,
      `${tail} `,
      `${tail}\n`,
      tail.replace(/^./, '+'),
    ]) {
      assert.throws(() => verifyToken(`${head}.${body}.${wrong}`, options), JwtError)
    }
  })

  it('are rejected with JwtError only, for any content', () => {
    const token = signer.sign({ sub: 'x', exp: nowSeconds + 100 })
    const edit = fc.tuple(fc.nat({ max: token.length - 1 }), fc.string({ maxLength: 3 }))
    fc.assert(
      fc.property(edit, fc.boolean(), fc.string(), ([at, text], useNoise, noise) => {
        const changed = useNoise ? noise : token.slice(0, at) + text + token.slice(at + text.length)
        if (changed === token) return
        assert.throws(() => verifyToken(changed, options), JwtError)
      }),
      { numRuns: 500 },
    )
    for (const text of ['', '.', '..', '...', 'a.b.c.d', 'x'.repeat(100_000), `${part([])}.${part({})}.eA`]) {
      assert.throws(() => verifyToken(text, options), JwtError)
      assert.throws(() => readUnverified(text), JwtError)
    }
  })

  it('can be decoded before verification', () => {
    assert.equal(readUnverified(createSigner(createKey()).sign({ iss: 'them' })).claims['iss'], 'them')
  })
})

describe('JSON web key sets', () => {
  it('round-trip without private parts', () => {
    const keys = [key, verifyingKey(rsa), verifyingKey(createKey('ed25519'))]
    const set = toKeySet(keys)
    assert.deepEqual(Object.keys(set.keys[0] ?? {}), ['use', 'kty', 'kid', 'crv', 'alg', 'x', 'y'])
    assert.deepEqual(
      set.keys.map((one) => one.alg),
      ['ES256', 'RS256', 'EdDSA'],
    )
    assert.doesNotMatch(JSON.stringify(set), /"[dpq]"/)
    const again = parseKeySet(JSON.parse(JSON.stringify(set)))
    assert.deepEqual(
      again.map(({ kid }) => kid),
      keys.map(({ kid }) => kid),
    )
    verifyToken(signer.sign({}), { keys: again, clock })
  })

  it('have key IDs as in Kubernetes', () => {
    // openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary | basenc --base64url, without padding.
    const pem =
      '-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEH6cuzP8XuD5wal6wf9M6xDljTOPL\nX2i8uIp/C/ASqiIGUeeKQtX0/IR3qCXyThP/dbCiHrF3v1cuhBOHY8CLVg==\n-----END PUBLIC KEY-----\n'
    assert.equal(keyIdOf(createPublicKey(pem)), 'SoABiieYuNx4UdqYvZRVeuC6SihxgLrhLy9peHMHpTc')
  })

  it('omit keys that have another purpose or an unknown type, or that are invalid or too weak', () => {
    const good = toKeySet([key]).keys[0]
    const weak = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' })
    const list = [
      { ...good, use: 'enc' },
      { kty: 'oct', k: 'AAAA' },
      { kty: 'EC' },
      null,
      'x',
      { ...good, x: '!' },
      weak,
      good,
    ]
    assert.deepEqual(
      parseKeySet({ keys: list }).map(({ kid }) => kid),
      [key.kid],
    )
    for (const wrong of [null, [], {}, { keys: 'x' }, { keys: Array(101).fill(good) }]) {
      assert.throws(() => parseKeySet(wrong), fails('malformed'))
    }
  })

  it('are referenced by an OpenID discovery document', () => {
    assert.deepEqual(discoveryDocument('https://k', 'https://k/openid/v1/jwks', [verifyingKey(rsa), key]), {
      issuer: 'https://k',
      jwks_uri: 'https://k/openid/v1/jwks',
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256', 'RS256'],
    })
  })
})
