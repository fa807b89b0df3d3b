import assert from 'node:assert/strict'
import { createHmac, createPublicKey, sign } from 'node:crypto'
import { describe, it } from 'node:test'

import { Nodes, Pods, type Secret, Secrets, ServiceAccounts } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { type VerifyingKey, verifyingKey } from '#lib/jwt/key.ts'
import { createSigner } from '#lib/jwt/token.ts'
import { createKey } from '#lib/x509/key.ts'
import type { ObjectMeta } from '#meta/object.ts'
import { timeOf } from '#meta/time.ts'
import { createServerMeters } from '#model/metrics/families.ts'

import type { TokenIdentity } from '../authenticator.ts'
import type { LiveObject, LiveObjects } from '../live-objects.ts'
import { createServiceAccountAuthenticator, type ServiceAccountTokenOptions } from './service-account.ts'

const key = createKey()
const signer = createSigner(key)
const api = 'https://kubernetes.default.svc'

/** Objects by kind, namespace and name. Setting an object creates a new entry, as in the cache. */
class Objects implements LiveObjects {
  readonly entries = new Map<string, LiveObject>()
  /** Objects that the cache does not have yet. */
  readonly hidden = new Set<string>()
  reads = 0

  set(kind: Kind, namespace: string, metadata: ObjectMeta, rest: object = {}): void {
    this.entries.set(`${kind.plural}/${namespace}/${metadata.name}`, { object: { metadata, ...rest } })
  }

  remove(kind: Kind, namespace: string, name: string): void {
    this.entries.delete(`${kind.plural}/${namespace}/${name}`)
  }

  peek(kind: Kind, namespace: string, name: string): LiveObject | undefined {
    const id = `${kind.plural}/${namespace}/${name}`
    return this.hidden.has(id) ? undefined : this.entries.get(id)
  }

  get(kind: Kind, namespace: string, name: string): Promise<LiveObject | undefined> {
    this.reads++
    return Promise.resolve(this.entries.get(`${kind.plural}/${namespace}/${name}`))
  }
}

interface World {
  readonly clock: VirtualClock
  readonly objects: Objects
  readonly claims: Record<string, unknown>
  readonly check: (token: string, audiences?: string[]) => Promise<TokenIdentity | undefined>
}

function createWorld(more: Partial<ServiceAccountTokenOptions> = {}): World {
  const clock = createVirtualClock()
  const objects = new Objects()
  objects.set(ServiceAccounts, 'n1', { name: 'bot', namespace: 'n1', uid: 'sa-uid' })
  objects.set(Pods, 'n1', { name: 'web', namespace: 'n1', uid: 'pod-uid' })
  objects.set(Nodes, '', { name: 'alpha', uid: 'node-uid' })
  objects.set(Secrets, 'n1', { name: 'bound', namespace: 'n1', uid: 'secret-uid' })
  const now = clock.now() / 1000
  const keys = [verifyingKey(key)]
  const authenticate = createServiceAccountAuthenticator({
    clock,
    objects,
    issuers: [api, 'https://old.example'],
    keys: () => keys,
    apiAudiences: [api],
    ...more,
  })
  return {
    clock,
    objects,
    claims: {
      aud: [api],
      exp: now + 3600,
      iat: now,
      nbf: now,
      iss: api,
      jti: 'id1',
      sub: 'system:serviceaccount:n1:bot',
      'kubernetes.io': {
        namespace: 'n1',
        serviceaccount: { name: 'bot', uid: 'sa-uid' },
        pod: { name: 'web', uid: 'pod-uid' },
        node: { name: 'alpha', uid: 'node-uid' },
      },
    },
    check: async (token, audiences = []) => authenticate(token, audiences),
  }
}

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

describe('authentication by service account token', () => {
  it('yields the account, pod, node and credential ID', async () => {
    const { check, claims } = createWorld()
    assert.deepEqual(await check(signer.sign(claims)), {
      audiences: [api],
      user: {
        name: 'system:serviceaccount:n1:bot',
        uid: 'sa-uid',
        groups: ['system:serviceaccounts', 'system:serviceaccounts:n1', 'system:authenticated'],
        extra: {
          'authentication.kubernetes.io/credential-id': ['JTI=id1'],
          'authentication.kubernetes.io/node-name': ['alpha'],
          'authentication.kubernetes.io/node-uid': ['node-uid'],
          'authentication.kubernetes.io/pod-name': ['web'],
          'authentication.kubernetes.io/pod-uid': ['pod-uid'],
        },
      },
    })
  })

  it('rejects forged tokens', async () => {
    const { check, claims } = createWorld()
    const pem = createPublicKey(key).export({ format: 'pem', type: 'spki' })
    const body = part(claims)
    const hmac = (input: string): string => createHmac('sha256', pem).update(input).digest('base64url')
    const headed = (header: object, make: (input: string) => string): string => {
      const input = `${part(header)}.${body}`
      return `${input}.${make(input)}`
    }
    const good = signer.sign(claims)
    const [head = '', , tail = ''] = good.split('.')
    const altered = `${head}.${part({ ...claims, sub: 'system:serviceaccount:kube-system:root' })}.${tail}`
    const forged: [string, string][] = [
      ['no algorithm', headed({ alg: 'none' }, () => 'eA')],
      ['no signature', `${part({ alg: 'none' })}.${body}.`],
      ['public key as secret', headed({ alg: 'HS256', kid: signer.kid }, hmac)],
      ['another key', createSigner(createKey()).sign(claims)],
      ['another key under our name', createSigner(createKey(), signer.kid).sign(claims)],
      [
        'an RSA name on our key',
        headed({ alg: 'RS256', kid: signer.kid }, (input) =>
          sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url'),
        ),
      ],
      ['other claims', altered],
      ['cut off', good.slice(0, -4)],
      [
        'the key in the header',
        headed({ alg: 'ES256', jwk: createPublicKey(key).export({ format: 'jwk' }) }, () => 'eA'),
      ],
    ]
    for (const [what, token] of forged) {
      const outcome = await check(token).then(
        (found) => found,
        (error: Error) => error.message,
      )
      assert.ok(outcome === undefined || typeof outcome === 'string', `${what} was accepted`)
    }
    for (const token of [
      '',
      'x',
      'a.b.c',
      signer.sign({ ...claims, iss: 'https://other.example' }),
      signer.sign({ ...claims, iss: 7 }),
    ]) {
      assert.equal(await check(token), undefined)
    }
  })

  const refused: [string, (claims: Record<string, unknown>, now: number) => object, RegExp][] = [
    ['that is expired', (_, now) => ({ exp: now - 61 }), /^service account token has expired$/],
    ['before its nbf time', (_, now) => ({ nbf: now + 61 }), /^service account token is not valid yet$/],
    ['issued in the future', (_, now) => ({ iat: now + 61 }), /^service account token is issued in the future$/],
    [
      'for another audience',
      () => ({ aud: ['vault'] }),
      /^token audiences \["vault"\] is invalid for the target audiences \["https:/,
    ],
    [
      'of a deleted service account',
      () => ({ 'kubernetes.io': { namespace: 'n1', serviceaccount: { name: 'x', uid: 'u' } } }),
      /^serviceaccounts "x" not found$/,
    ],
    [
      'of a service account that was recreated with another UID',
      () => ({ 'kubernetes.io': { namespace: 'n1', serviceaccount: { name: 'bot', uid: 'old' } } }),
      /^service account UID \(sa-uid\) does not match claim \(old\)$/,
    ],
    ['without a subject', () => ({ 'kubernetes.io': undefined }), /not found$/],
    ['with an invalid exp claim', () => ({ exp: 'never' }), /exp/],
  ]
  for (const [what, changed, text] of refused) {
    it(`rejects a token ${what}`, async () => {
      const { check, claims, clock } = createWorld()
      const token = signer.sign({ ...claims, ...changed(claims, clock.now() / 1000) })
      await assert.rejects(check(token), (error: Error) => text.test(error.message) || assert.fail(error.message))
    })
  }

  it('rejects a token after its bound object is deleted', async () => {
    const account = { name: 'bot', uid: 'sa-uid' }
    const bonds: [string, object, Kind, string, string, string][] = [
      ['pod', { pod: { name: 'web', uid: 'pod-uid' } }, Pods, 'n1', 'web', 'pod-uid'],
      ['node', { node: { name: 'alpha', uid: 'node-uid' } }, Nodes, '', 'alpha', 'node-uid'],
      ['secret', { secret: { name: 'bound', uid: 'secret-uid' } }, Secrets, 'n1', 'bound', 'secret-uid'],
    ]
    for (const [what, bond, kind, namespace, name, uid] of bonds) {
      const { check, claims, objects, clock } = createWorld()
      const token = signer.sign({ ...claims, 'kubernetes.io': { namespace: 'n1', serviceaccount: account, ...bond } })
      assert.ok(await check(token))
      // An object that is being deleted still counts for a minute.
      objects.set(kind, namespace, { name, uid, deletionTimestamp: timeOf(clock.now()) })
      assert.ok(await check(token), what)
      await clock.advance(61_000)
      await assert.rejects(check(token), /service account token has been invalidated/)
      objects.set(kind, namespace, { name, uid: 'another' })
      await assert.rejects(check(token), {
        message: `${what} UID (another) does not match service account ${what} ref claim (${uid})`,
      })
      objects.remove(kind, namespace, name)
      await assert.rejects(check(token), /service account token has been invalidated/)
      objects.set(kind, namespace, { name, uid })
      assert.ok(await check(token))
    }
  })

  it('rejects a token after its service account is deleted', async () => {
    const { check, claims, objects } = createWorld()
    const token = signer.sign(claims)
    assert.ok(await check(token))
    objects.remove(ServiceAccounts, 'n1', 'bot')
    await assert.rejects(check(token), /not found/)
  })

  it("accepts a pod's token after the node of the pod is deleted", async () => {
    const { check, claims, objects } = createWorld()
    const token = signer.sign(claims)
    objects.remove(Nodes, '', 'alpha')
    assert.ok(await check(token))
  })

  it('caches results, and returns the same user synchronously without reading the account again', async () => {
    const { clock, objects, claims } = createWorld()
    const keys = [verifyingKey(key)]
    const authenticate = createServiceAccountAuthenticator({
      clock,
      objects,
      issuers: [api],
      keys: () => keys,
      apiAudiences: [api],
    })
    const token = signer.sign(claims)
    const first = await authenticate(token, [])
    const second = authenticate(token, []) as TokenIdentity
    assert.equal(second.user, first?.user)
    assert.equal(objects.reads, 0)
  })

  it('reads the newest state before it rejects a token because of a stale cache', async () => {
    const { check, claims, objects } = createWorld()
    objects.hidden.add('pods/n1/web')
    assert.ok(await check(signer.sign(claims)))
    assert.equal(objects.reads, 1)
  })

  it('rejects a cached token when it expires', async () => {
    const { check, claims, clock } = createWorld()
    const token = signer.sign(claims)
    assert.ok(await check(token))
    await clock.advance(3_661_000)
    await assert.rejects(check(token), /expired/)
  })

  it('drops cached results when the key that signed the tokens is removed', async () => {
    let keys: readonly VerifyingKey[] = [verifyingKey(key)]
    const { check, claims } = createWorld({ keys: () => keys })
    const token = signer.sign(claims)
    assert.ok(await check(token))
    keys = [verifyingKey(createKey())]
    await assert.rejects(check(token), /invalid signature/)
  })

  it('adds an audit annotation if the client should have switched to a newer token', async () => {
    const { check, claims, clock } = createWorld()
    const own = { ...(claims['kubernetes.io'] as object), warnafter: clock.now() / 1000 + 60 }
    const token = signer.sign({ ...claims, 'kubernetes.io': own })
    assert.equal((await check(token))?.user.notes, undefined)
    await clock.advance(67_000)
    assert.deepEqual((await check(token))?.user.notes, {
      'authentication.k8s.io/stale-token': 'subject: system:serviceaccount:n1:bot, seconds after warning threshold: 7',
    })
  })

  it('accepts a token for its audiences, or for the API server if the token names none', async () => {
    const { check, claims } = createWorld()
    const both = signer.sign({ ...claims, aud: ['vault', api] })
    assert.deepEqual((await check(both, ['vault', 'x']))?.audiences, ['vault'])
    assert.deepEqual((await check(both))?.audiences, [api])
    const { aud: _, ...bare } = claims
    assert.deepEqual((await check(signer.sign(bare)))?.audiences, [api])
    await assert.rejects(check(signer.sign(bare), ['vault']), /invalid for the target audiences \["vault"\]/)
  })
})

describe('authentication by token Secret', () => {
  const legacy = {
    iss: 'kubernetes/serviceaccount',
    sub: 'system:serviceaccount:n1:bot',
    'kubernetes.io/serviceaccount/namespace': 'n1',
    'kubernetes.io/serviceaccount/secret.name': 'kept',
    'kubernetes.io/serviceaccount/service-account.name': 'bot',
    'kubernetes.io/serviceaccount/service-account.uid': 'sa-uid',
  }
  const token = signer.sign(legacy)
  const data = { token: Buffer.from(token).toString('base64') }
  const metadata = { name: 'kept', namespace: 'n1', uid: 'kept-uid' }

  it('accepts a token only while the Secret contains it', async () => {
    const metrics = createServerMeters()
    const { check, objects, clock } = createWorld({ metrics })
    await assert.rejects(check(token), /Token has been invalidated/)
    objects.set(Secrets, 'n1', metadata, { data })
    const found = await check(token)
    assert.deepEqual(found?.user.extra, {})
    assert.deepEqual(found.audiences, [api])
    objects.set(
      Secrets,
      'n1',
      { ...metadata, labels: { 'kubernetes.io/legacy-token-invalid-since': '2026-01-01' } },
      { data },
    )
    await assert.rejects(check(token), /has been marked invalid\. Use tokens from the TokenRequest API/)
    assert.match(metrics.registry.render(), /^serviceaccount_invalid_legacy_auto_token_uses_total 1$/m)
    objects.set(Secrets, 'n1', metadata, { data: { token: 'eA==' } })
    await assert.rejects(check(token), /Token does not match server's copy/)
    objects.set(Secrets, 'n1', { ...metadata, deletionTimestamp: timeOf(clock.now()) }, { data })
    await assert.rejects(check(token), /Token has been invalidated/)
  })

  it('records the day of the last use once a day, even for invalidated tokens', async () => {
    const used: string[] = []
    const markUse = async ({ metadata: { name } }: Secret, day: string): Promise<void> => {
      await Promise.resolve()
      used.push(`${name} ${day}`)
    }
    const { check, objects, clock } = createWorld({ markUse })
    await assert.rejects(check(token), /Token has been invalidated/)
    assert.deepEqual(used, [])
    objects.set(Secrets, 'n1', metadata, { data })
    await Promise.all([check(token), check(token)])
    assert.deepEqual(used.splice(0), ['kept 2026-01-01'])
    for (const day of ['2026-01-01', '2026-01-02']) {
      objects.set(Secrets, 'n1', { ...metadata, labels: { 'kubernetes.io/legacy-token-last-used': day } }, { data })
      await check(token)
      assert.deepEqual(used, [])
    }
    await clock.advance(2 * 86_400_000)
    await check(token)
    assert.deepEqual(used.splice(0), ['kept 2026-01-03'])
    const labels = { 'kubernetes.io/legacy-token-invalid-since': '2026-01-01' }
    objects.set(Secrets, 'n1', { ...metadata, labels }, { data })
    await assert.rejects(check(token), /has been marked invalid/)
    assert.deepEqual(used, ['kept 2026-01-03'])
  })

  it('adds a warning, and audit annotations with the Secret and its creator', async () => {
    const { check, objects } = createWorld()
    objects.set(Secrets, 'n1', metadata, { data })
    const start = 'authentication.k8s.io/legacy-token'
    const subject = 'system:serviceaccount:n1:bot'
    const manual = (await check(token))?.user
    assert.deepEqual(manual?.notes, { [start]: subject, [`${start}-manual-secret`]: 'kept' })
    assert.equal(manual.warnings, undefined)
    const account = { name: 'bot', namespace: 'n1', uid: 'sa-uid' }
    objects.set(ServiceAccounts, 'n1', account, { secrets: [{ name: 'kept' }] })
    const old = (await check(token))?.user
    assert.deepEqual(old?.notes, { [start]: subject, [`${start}-autogenerated-secret`]: 'kept' })
    assert.deepEqual(old.warnings, [
      'Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens.',
    ])
  })

  it('rejects a token without all claims or with several subjects', async () => {
    const { check } = createWorld()
    const claim = (name: string): string => `kubernetes.io/serviceaccount/${name}`
    const table: [object, string][] = [
      [{ sub: '' }, 'sub claim is missing'],
      [{ [claim('namespace')]: '' }, 'namespace claim is missing'],
      [{ [claim('secret.name')]: 7 }, 'secretName claim is missing'],
      [{ [claim('service-account.name')]: undefined }, 'serviceAccountName claim is missing'],
      [{ [claim('service-account.uid')]: '' }, 'serviceAccountUID claim is missing'],
      [{ sub: 'system:serviceaccount:n1:root' }, 'sub claim is invalid'],
    ]
    for (const [changed, message] of table) {
      await assert.rejects(check(signer.sign({ ...legacy, ...changed })), { message })
    }
  })
})
