import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'

import type { TokenRequest } from '#apis/authentication/v1.ts'
import { Nodes, Pods, Secrets, ServiceAccounts } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { createLiveObjects } from '#apiserver/auth/live-objects.ts'
import { createDispatch } from '#apiserver/dispatch.ts'
import { type Admission, admitAll, type Attributes } from '#apiserver/registry/admission.ts'
import { Registry } from '#apiserver/registry/registry.ts'
import { defineResource } from '#apiserver/registry/resource.ts'
import { createServiceAccountAuthenticator } from '#auth/authenticators/service-account.ts'
import { requestInfoOf } from '#auth/request-info.ts'
import type { Call, WholeAnswer } from '#component/requests/call.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { verifyingKey } from '#lib/jwt/key.ts'
import { createSigner, readUnverified } from '#lib/jwt/token.ts'
import { createSeededRandom } from '#lib/random.ts'
import { createKey } from '#lib/x509/key.ts'
import type { KubeObject } from '#meta/object.ts'
import { forbiddenError } from '#meta/status-errors.ts'
import { StatusError } from '#meta/status.ts'
import { createAtRest } from '#storage/encryption/at-rest.ts'
import { NO_ENCRYPTION } from '#storage/encryption/config.ts'
import { createMemoryBackend } from '#storage/memory.ts'
import { WatchCache } from '#storage/watch-cache/watch-cache.ts'

import { createServiceAccountTokenHandler, type ServiceAccountTokenOptions } from './serviceaccount-token.ts'

const key = createKey()
const issuer = 'https://kubernetes.default.svc'
const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function createWorld(more: Partial<ServiceAccountTokenOptions> = {}, plugins: Partial<Admission> = {}) {
  const [clock, random] = [createVirtualClock(), createSeededRandom(1)]
  const backend = createMemoryBackend({ clock, random })
  const cache = new WatchCache({ backend, clock, prefix: '/registry/' })
  const admitted: Attributes[] = []
  const registry = new Registry({
    backend,
    cache,
    clock,
    random,
    admission: () => ({
      ...admitAll,
      validate: (attributes) => (admitted.push(attributes), Promise.resolve()),
      ...plugins,
    }),
    isEnabled: () => false,
    allowPrivileged: true,
    atRest: createAtRest(NO_ENCRYPTION, random),
  })
  for (const kind of [ServiceAccounts, Pods, Nodes, Secrets]) await registry.add(defineResource<KubeObject>({ kind }))
  await cache.start()
  closing.push(async () => {
    await cache.close()
    await backend.close()
  })
  const add = async (kind: Kind, namespace: string, name: string, rest: object = {}): Promise<string> => {
    const metadata = namespace === '' ? { name } : { name, namespace }
    const object = { kind: kind.kind, apiVersion: 'v1', metadata, ...rest }
    return (await registry.writer.create(kind, object))?.metadata.uid ?? ''
  }
  const uids = {
    account: await add(ServiceAccounts, 'n1', 'bot'),
    node: await add(Nodes, '', 'alpha', { spec: {}, status: {} }),
    pod: await add(Pods, 'n1', 'web', {
      spec: { serviceAccountName: 'bot', nodeName: 'alpha', containers: [] },
      status: {},
    }),
    other: await add(Pods, 'n1', 'other', { spec: { serviceAccountName: 'else', containers: [] }, status: {} }),
    secret: await add(Secrets, 'n1', 'bound'),
  }
  admitted.length = 0
  const handler = createServiceAccountTokenHandler({
    signer: createSigner(key),
    issuer,
    apiAudiences: [issuer],
    ...more,
  })
  const dispatch = createDispatch(registry, { 'serviceaccounts/token': { create: handler } })
  const warnings: string[] = []
  const ask = async (body: object, name = 'bot'): Promise<TokenRequest> => {
    const query = new URLSearchParams()
    const info = requestInfoOf('POST', `/api/v1/namespaces/n1/serviceaccounts/${name}/token`, query)
    const headers: Record<string, string> = { 'content-type': 'application/json' }
    const call: Call = {
      method: 'POST',
      info,
      query,
      header: (header) => headers[header] ?? '',
      body: () => Promise.resolve(Buffer.from(JSON.stringify(body))),
      exchange: undefined as never,
      user: { name: 'kubelet', uid: '', groups: [], extra: {} },
      auditId: 'a',
      demand: () => Promise.resolve(),
      signal: new AbortController().signal,
      warn: (text) => warnings.push(text),
    }
    const answer = (await dispatch(call)) as WholeAnswer
    assert.equal(answer.status, 201)
    return JSON.parse(answer.body as string) as TokenRequest
  }
  return { ask, uids, clock, registry, warnings, admitted }
}

const claimsOf = ({ status }: TokenRequest): Record<string, unknown> => readUnverified(status.token).claims
const bound = (kind: string, name: string, uid?: string) => ({
  boundObjectRef: { apiVersion: 'v1', kind, name, ...(uid === undefined ? {} : { uid }) },
})

describe('TokenRequest', () => {
  it('returns a token for the API server that is valid for an hour', async () => {
    const { ask, uids, clock, admitted } = await createWorld()
    const answer = await ask({ spec: {} })
    const now = clock.now() / 1000
    const { jti, ...claims } = claimsOf(answer)
    assert.match(String(jti), /^[0-9a-f-]{36}$/)
    assert.deepEqual(claims, {
      aud: [issuer],
      exp: now + 3600,
      iat: now,
      iss: issuer,
      'kubernetes.io': { namespace: 'n1', serviceaccount: { name: 'bot', uid: uids.account } },
      nbf: now,
      sub: 'system:serviceaccount:n1:bot',
    })
    assert.equal(answer.kind, 'TokenRequest')
    assert.equal(answer.spec.expirationSeconds, 3600)
    assert.equal(answer.metadata.uid, uids.account)
    assert.equal(answer.status.expirationTimestamp, '2026-01-01T01:00:00Z')
    assert.deepEqual([admitted[0]?.subresource, admitted[0]?.objectKind.kind], ['token', 'TokenRequest'])
  })

  it('binds a token to a pod with its node, to a node or to a Secret', async () => {
    const { ask, uids } = await createWorld()
    const own = async (reference: object) =>
      claimsOf(await ask({ spec: reference }))['kubernetes.io'] as Record<string, unknown>
    const pod = await own(bound('Pod', 'web', uids.pod))
    assert.deepEqual(pod['pod'], { name: 'web', uid: uids.pod })
    assert.deepEqual(pod['node'], { name: 'alpha', uid: uids.node })
    assert.deepEqual((await own(bound('Node', 'alpha')))['node'], { name: 'alpha', uid: uids.node })
    assert.deepEqual((await own(bound('Secret', 'bound')))['secret'], { name: 'bound', uid: uids.secret })
  })

  it('returns a token that is invalid after its bound object is deleted', async () => {
    const { ask, registry, clock } = await createWorld()
    const keys = [verifyingKey(key)]
    const objects = createLiveObjects(registry)
    const authenticate = createServiceAccountAuthenticator({
      clock,
      objects,
      issuers: [issuer],
      keys: () => keys,
      apiAudiences: [issuer],
    })
    const { status } = await ask({ spec: bound('Pod', 'web') })
    const found = await authenticate(status.token, [])
    assert.equal(found?.user.extra['authentication.kubernetes.io/pod-name']?.[0], 'web')
    await registry.writer.delete(Pods, { namespace: 'n1', name: 'web' }, { gracePeriodSeconds: 0 })
    await registry.services.cache.fresh()
    await assert.rejects(async () => authenticate(status.token, []), /service account token has been invalidated/)
  })

  it('returns a token with extended lifetime for a pod, and the time after which the server warns', async () => {
    const { ask, clock } = await createWorld()
    const injected = { ...bound('Pod', 'web'), expirationSeconds: 3607 }
    const answer = await ask({ spec: injected })
    const now = clock.now() / 1000
    assert.equal(claimsOf(answer)['exp'], now + 365 * 86_400)
    assert.equal((claimsOf(answer)['kubernetes.io'] as { warnafter: number }).warnafter, now + 3607)
    assert.equal(answer.status.expirationTimestamp, '2026-01-01T01:00:07Z')
    const plain = await (await createWorld({ extendExpiration: false })).ask({ spec: injected })
    assert.equal(claimsOf(plain)['exp'], now + 3607)
    assert.equal(claimsOf(await ask({ spec: { ...injected, audiences: ['vault'] } }))['exp'], now + 3607)
  })

  it('is limited to the maximum lifetime', async () => {
    const { ask, warnings } = await createWorld({ maxExpirationSeconds: 7200 })
    assert.equal((await ask({ spec: { expirationSeconds: 9000 } })).spec.expirationSeconds, 7200)
    assert.deepEqual(warnings, ['requested expiration of 9000 seconds shortened to 7200 seconds'])
  })

  it('is validated before a missing service account is reported', async () => {
    const refusal = forbiddenError({ group: '', resource: 'serviceaccounts' }, 'ghost', 'not yours')
    let seen: Attributes | undefined
    const mutate = (attributes: Attributes): Promise<void> => {
      if (attributes.subresource !== 'token') return Promise.resolve()
      seen = attributes
      return Promise.reject(refusal)
    }
    const { ask } = await createWorld({}, { mutate })
    await assert.rejects(ask({ spec: {} }, 'ghost'), refusal)
    await assert.rejects(ask({ metadata: { name: 'x' }, spec: {} }), refusal)
    assert.equal(seen?.object?.metadata.namespace, 'n1')
    assert.equal((seen.object as TokenRequest).spec.expirationSeconds, 3600)
  })

  const refused: [string, object, number, string | RegExp, string?][] = [
    [
      'with a lifetime below ten minutes',
      { spec: { expirationSeconds: 599 } },
      422,
      'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes',
    ],
    [
      'with too long a lifetime',
      { spec: { expirationSeconds: 2 ** 33 } },
      422,
      /may not specify a duration larger than 2\^32 seconds$/,
    ],
    ['for a missing service account', { spec: {} }, 404, 'serviceaccounts "ghost" not found', 'ghost'],
    [
      'under the name of another service account',
      { metadata: { name: 'x' }, spec: {} },
      422,
      /must match the service account name if specified$/,
    ],
    [
      'in another namespace',
      { metadata: { namespace: 'x' }, spec: {} },
      400,
      'the namespace of the provided object does not match the namespace sent on the request',
    ],
    [
      'for a service account that was recreated with another UID',
      { metadata: { uid: 'old' }, spec: {} },
      409,
      /the UID in the token request \(old\) does not match the UID of the service account/,
    ],
    ['if the token is bound to a missing pod', { spec: bound('Pod', 'ghost') }, 404, 'pods "ghost" not found'],
    [
      'if the token is bound to a pod of another account',
      { spec: bound('Pod', 'other') },
      400,
      'cannot bind token for serviceaccount "bot" to pod running with different serviceaccount name.',
    ],
    [
      'if the token is bound to an object that was recreated',
      { spec: bound('Secret', 'bound', 'old') },
      409,
      /^Operation cannot be fulfilled on Secret "bound": the UID in the bound object reference \(old\)/,
    ],
    [
      'if the token is bound to an object of another kind than Pod, Node and Secret',
      { spec: bound('ConfigMap', 'x') },
      400,
      'cannot bind token to object of type /v1, Kind=ConfigMap',
    ],
    [
      'if the kind of the bound object is a property of Object.prototype, such as "constructor"',
      { spec: bound('constructor', 'x') },
      400,
      /cannot bind token/,
    ],
  ]
  for (const [what, body, code, message, name] of refused) {
    it(`is refused ${what}`, async () => {
      const { ask } = await createWorld()
      await assert.rejects(ask(body, name), (error: unknown) => {
        assert.ok(error instanceof StatusError)
        assert.equal(error.status.code, code)
        if (typeof message === 'string') assert.equal(error.message, message)
        else assert.match(error.message, message)
        return true
      })
    })
  }
})
