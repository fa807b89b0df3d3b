import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { schemaFor } from '#apis/schemas.ts'
import { requestInfoOf } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'
import type { Answer } from '#component/requests/call.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import type { Peer } from '#lib/http/exchange.ts'

import { type AuditEvent, eventLine } from './event.ts'
import { createPolicyEvaluator, type Policy, type PolicyRule } from './policy.ts'
import { AuditTrail } from './trail.ts'

const jane: User = { name: 'jane', uid: '', groups: ['dev'], extra: {} }
const CONFIG_MAPS = '/api/v1/namespaces/a/configmaps'
const json = (value: object, status = 200): Answer => ({
  status,
  contentType: 'application/json',
  body: `${JSON.stringify(value)}\n`,
})
const OBJECT = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'x', managedFields: [{ manager: 'm' }] } }
const NOT_FOUND = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message: 'none', code: 404 }

interface World {
  readonly trail: AuditTrail
  readonly events: AuditEvent[]
  readonly levels: string[]
  readonly rejections: () => number
  readonly clock: VirtualClock
  /** For each event: level, stage, and the members of its JSON with these names. */
  readonly shown: (...names: string[]) => unknown[]
}

interface Setting {
  readonly method?: string
  readonly path?: string
  readonly rule?: Partial<PolicyRule>
  readonly policy?: Partial<Policy>
  readonly headers?: Readonly<Record<string, string>>
  readonly store?: (event: AuditEvent) => boolean | Promise<boolean>
  readonly isStrict?: boolean
}

function begin(setting: Setting = {}): World {
  const { method = 'GET', path = `${CONFIG_MAPS}/x`, rule, policy, headers = {}, store = () => true } = setting
  const clock = createVirtualClock()
  const events: AuditEvent[] = []
  const levels: string[] = []
  let rejections = 0
  const [bare = '', query] = path.split('?')
  const trail = new AuditTrail(
    {
      clock,
      evaluate: createPolicyEvaluator({ rules: [{ level: 'RequestResponse', ...rule }], ...policy }),
      schemaFor,
      store(event) {
        events.push(event)
        return store(event)
      },
      isStrict: setting.isStrict ?? false,
      observe: (level) => void levels.push(level),
      rejected: () => void rejections++,
    },
    {
      exchange: { path, headers, peer: { address: '192.0.2.1' } as Peer },
      info: requestInfoOf(method, bare, query === undefined ? undefined : new URLSearchParams(query)),
      auditId: 'id-1',
    },
  )
  const shown = (...names: string[]): unknown[] =>
    events.map((event) => {
      const whole = JSON.parse(eventLine(event)) as Record<string, unknown>
      return [event.stage, ...names.map((name) => whole[name])]
    })
  return { trail, events, levels, rejections: () => rejections, clock, shown }
}

const CODE = { metadata: {}, code: 200 }
const INFO = requestInfoOf('GET', CONFIG_MAPS, undefined)

describe('audit trail of a request', () => {
  it('has one event for RequestReceived and one for ResponseComplete', async () => {
    const { trail, shown, levels } = begin()
    assert.equal(await trail.received(jane), trail)
    const answer = json(OBJECT)
    assert.equal(await trail.answered(answer), answer)
    await trail.following(answer, Promise.resolve())
    assert.deepEqual(shown('responseStatus', 'responseObject'), [
      ['RequestReceived', undefined, undefined],
      ['ResponseComplete', CODE, OBJECT],
    ])
    assert.deepEqual(levels, ['RequestResponse'])
  })

  it('has no events if the policy level is None', async () => {
    const { trail, events, levels } = begin({ rule: { level: 'None' } })
    assert.equal(await trail.received(jane), undefined)
    await trail.answered(json(OBJECT))
    assert.deepEqual([events, levels], [[], ['None']])
  })

  const kept: readonly (readonly [PolicyRule['level'], string[]])[] = [
    ['Metadata', []],
    ['Request', ['requestObject']],
    ['RequestResponse', ['requestObject', 'responseObject']],
  ]
  for (const [level, objects] of kept) {
    it(`contains ${objects.join(' and ') || 'no objects'} at level ${level}`, async () => {
      const { trail, events } = begin({ method: 'POST', path: CONFIG_MAPS, rule: { level } })
      await trail.received(jane)
      trail.body(structuredClone(OBJECT))
      await trail.answered(json(OBJECT, 201))
      const whole = JSON.parse(eventLine(events[1]!)) as Record<string, unknown>
      assert.deepEqual(
        ['requestObject', 'responseObject'].filter((name) => name in whole),
        objects,
      )
      assert.deepEqual(whole['objectRef'], { resource: 'configmaps', namespace: 'a', name: 'x', apiVersion: 'v1' })
    })
  }

  it('contains the request body before the handler changes it, with defaults in schema order', async () => {
    const { trail, events } = begin({ method: 'POST', path: CONFIG_MAPS })
    await trail.received(jane)
    const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'x', uid: 'u', resourceVersion: '7' } }
    trail.body(object, (copy) => Object.assign(copy, { immutable: true, data: { b: '2', a: '1' } }))
    object.metadata.name = 'other'
    await trail.answered(json(OBJECT, 201))
    assert.equal(
      events[1]?.requestObject,
      '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","uid":"u","resourceVersion":"7"},"immutable":true,"data":{"a":"1","b":"2"}}',
    )
    const { uid, resourceVersion } = events[1]?.subject.objectRef ?? {}
    assert.deepEqual([uid, resourceVersion], ['u', '7'])
  })

  it('omits managedFields if the policy requires that', async () => {
    const { trail, events } = begin({ method: 'PUT', rule: { omitManagedFields: true } })
    await trail.received(jane)
    trail.body(structuredClone(OBJECT))
    await trail.answered(json(OBJECT))
    const texts = [events[1]?.requestObject, events[1]?.responseObject]
    assert.ok(texts.every((text) => text !== undefined && !text.includes('managedFields')))
  })

  it('contains the body of a patch', async () => {
    const { trail, events } = begin({ method: 'PATCH', rule: { level: 'Request' } })
    await trail.received(jane)
    trail.patch(Buffer.from('{ "data": {"a": 1.0} }'))
    await trail.answered(json(OBJECT))
    assert.equal(events[1]?.requestObject, '{"data":{"a":1.0}}')
  })

  it('contains the message of an error Status, and only the code of other responses', async () => {
    const { trail, shown } = begin({ rule: { level: 'Metadata', omitStages: ['RequestReceived'] } })
    await trail.received(jane)
    await trail.answered(json(NOT_FOUND, 404))
    const responseStatus = { metadata: {}, status: 'Failure', message: 'none', code: 404 }
    assert.deepEqual(shown('responseStatus'), [['ResponseComplete', responseStatus]])
  })

  it('contains only the status code if no supported media type is acceptable', async () => {
    const { trail, shown } = begin({ headers: { accept: 'text/csv' }, policy: { omitStages: ['RequestReceived'] } })
    await trail.received(jane)
    await trail.answered(json(NOT_FOUND, 406))
    assert.deepEqual(shown('responseStatus', 'responseObject'), [
      ['ResponseComplete', { metadata: {}, code: 406 }, undefined],
    ])
  })

  it('makes the server send a response in one piece if the event contains it', async () => {
    const { trail, events } = begin()
    await trail.received(jane)
    const text = JSON.stringify({ kind: 'ConfigMapList', apiVersion: 'v1', metadata: {}, items: [] })
    function* pieces(): Generator<Buffer> {
      yield Buffer.from(text.slice(0, 20))
      yield Buffer.from(text.slice(20))
    }
    const sent = await trail.answered({ status: 200, contentType: 'application/json', body: pieces() })
    assert.deepEqual('body' in sent && sent.body, Buffer.from(text))
    assert.equal(events[1]?.responseObject, text)
  })
})

describe('audit trail of a request with an invalid body', () => {
  it('omits the request body and does not prevent the response', async () => {
    const { trail, events } = begin({ method: 'POST', path: CONFIG_MAPS })
    await trail.received(jane)
    trail.body(structuredClone(OBJECT), () => {
      throw new Error('no defaults')
    })
    const answer: Answer = {
      status: 201,
      contentType: 'application/vnd.kubernetes.protobuf',
      body: Buffer.from('k8s\0garbage'),
    }
    assert.equal(await trail.answered(answer), answer)
    const { requestObject, responseObject, responseStatus } = events[1] ?? {}
    assert.deepEqual([requestObject, responseObject, responseStatus], [undefined, undefined, { code: 201 }])
  })
})

describe('audit trail of a long-running request', () => {
  it('records the start and the end of a watch', async () => {
    const { trail, shown } = begin({ path: `${CONFIG_MAPS}?watch=true` })
    await trail.received(jane)
    const answer: Answer = { status: 200, contentType: 'application/json', stream: () => Promise.resolve() }
    await trail.answered(answer)
    assert.equal(shown().length, 2)
    await trail.following(answer, Promise.resolve())
    assert.deepEqual(shown('responseStatus'), [
      ['RequestReceived', undefined],
      ['ResponseStarted', CODE],
      ['ResponseComplete', CODE],
    ])
  })

  it('records both stages of a long-running request that ends immediately', async () => {
    const { trail, shown } = begin({ path: '/api/v1/namespaces/a/pods/p/log' })
    await trail.received(jane)
    await trail.answered(json(NOT_FOUND, 404))
    assert.deepEqual(shown(), [['RequestReceived'], ['ResponseStarted'], ['ResponseComplete']])
  })

  it('records status 101 of an upgraded connection', async () => {
    const { trail, shown } = begin({ method: 'POST', path: '/api/v1/namespaces/a/pods/p/exec' })
    await trail.received(jane)
    const answer: Answer = { status: 101, upgrade: () => Promise.resolve() }
    await trail.answered(answer)
    await trail.following(answer, Promise.resolve())
    const status = { metadata: {}, code: 101 }
    assert.deepEqual(shown('responseStatus').slice(1), [
      ['ResponseStarted', status],
      ['ResponseComplete', status],
    ])
  })
})

describe('audit trail of a failed request', () => {
  it('has only one stage and no user if authentication failed', async () => {
    const { trail, shown } = begin({ rule: { level: 'Metadata' } })
    await trail.answered(json({ ...NOT_FOUND, code: 401 }, 401))
    assert.deepEqual(shown('user', 'annotations'), [['ResponseStarted', {}, undefined]])
  })

  it('ends with the Panic stage if a handler throws', async () => {
    const { trail, shown } = begin({ rule: { level: 'Metadata' } })
    await trail.received(jane)
    await trail.panicked(new Error('oops'))
    const answer = json(NOT_FOUND, 500)
    assert.equal(await trail.answered(answer), answer)
    const responseStatus = {
      metadata: {},
      status: 'Failure',
      message: "APIServer panic'd: oops",
      reason: 'InternalError',
      code: 500,
    }
    assert.deepEqual(shown('responseStatus'), [
      ['RequestReceived', undefined],
      ['Panic', responseStatus],
    ])
  })

  it('keeps the first value of an annotation that is set twice', async () => {
    const { trail, shown } = begin()
    await trail.received(jane)
    assert.equal((await trail.authorizing(() => ({ allowed: true, reason: 'because' }), jane, INFO)).allowed, true)
    trail.annotate('authorization.k8s.io/reason', 'other')
    await trail.answered(json(OBJECT))
    assert.deepEqual(shown('annotations')[1], [
      'ResponseComplete',
      { 'authorization.k8s.io/decision': 'allow', 'authorization.k8s.io/reason': 'because' },
    ])
  })

  it('has the annotations of authentication in its first event', async () => {
    const { trail, shown } = begin()
    await trail.received({ ...jane, notes: { 'authentication.k8s.io/stale-token': 'old' } })
    const annotations = { 'authentication.k8s.io/stale-token': 'old' }
    assert.deepEqual(shown('annotations', 'user'), [
      ['RequestReceived', annotations, { username: 'jane', groups: ['dev'] }],
    ])
  })

  it('has the reason of an authorization error in an annotation', async () => {
    const { trail, shown } = begin()
    await trail.received(jane)
    await assert.rejects(trail.authorizing(() => Promise.reject(new Error('away')), jane, INFO))
    await trail.answered(json(NOT_FOUND, 500))
    assert.deepEqual(shown('annotations')[1], ['ResponseComplete', { 'authorization.k8s.io/reason': 'internal error' }])
  })

  it('contains the impersonated user', async () => {
    const { trail, shown } = begin()
    await trail.received(jane)
    trail.impersonated({ name: 'bob', uid: '', groups: ['g'], extra: {} }, 'impersonate:user-info')
    await trail.answered(json(OBJECT))
    assert.deepEqual(shown('impersonatedUser', 'authenticationMetadata'), [
      ['RequestReceived', undefined, undefined],
      ['ResponseComplete', { username: 'bob', groups: ['g'] }, { impersonationConstraint: 'impersonate:user-info' }],
    ])
  })

  it('has an annotation with the latency of a slow request', async () => {
    const { trail, shown, clock } = begin()
    await trail.received(jane)
    await clock.advance(1500)
    await trail.answered(json(OBJECT))
    assert.deepEqual(shown('annotations')[1], ['ResponseComplete', { 'apiserver.latency.k8s.io/total': '1.5s' }])
  })
})

describe('audit trail that cannot be written', () => {
  const never = { store: () => Promise.resolve(false), isStrict: true }
  const refused = { name: 'StatusError', message: 'Internal error occurred: failed to store audit event' }

  it('refuses a request before it runs if the first event is not written', async () => {
    for (const method of ['GET', 'POST']) {
      const { trail, rejections, events } = begin({ ...never, method })
      await assert.rejects(trail.received(jane), refused)
      const answer = json(NOT_FOUND, 500)
      assert.equal(await trail.answered(answer), answer)
      assert.deepEqual([rejections(), events.length], [1, 1])
    }
  })

  it('fails a write if none of its events is written', async () => {
    const policy = { omitStages: ['RequestReceived'] as const }
    const { trail, rejections } = begin({ ...never, method: 'POST', path: CONFIG_MAPS, policy })
    await trail.received(jane)
    await assert.rejects(trail.answered(json(OBJECT, 201)), refused)
    assert.equal(rejections(), 1)
  })

  it('lets a response pass if the first event was written', async () => {
    const store = (event: AuditEvent): boolean => event.stage === 'RequestReceived'
    const { trail } = begin({ store, isStrict: true, method: 'POST', path: CONFIG_MAPS })
    await trail.received(jane)
    const answer = json(OBJECT, 201)
    assert.equal(await trail.answered(answer), answer)
  })

  it('delays responses of reads until the events are written', async () => {
    const gate = Promise.withResolvers<boolean>()
    const { trail } = begin({ store: () => gate.promise })
    await trail.received(jane)
    let isAnswered = false
    const answered = trail.answered(json(OBJECT)).then(() => (isAnswered = true))
    await new Promise((done) => setImmediate(done))
    assert.equal(isAnswered, false)
    gate.resolve(true)
    await answered
  })
})
