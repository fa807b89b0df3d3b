import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import type { StatusError } from '#meta/status.ts'
import { compileAccessCondition } from '#model/expressions/access.ts'
import { createServerMeters } from '#model/metrics/families.ts'

import {
  asAuthorize,
  type Authorizer,
  forbiddenAccess,
  NO_OPINION,
  NO_RULES,
  pathAccess,
  resourceAccess,
  type Verdict,
} from '../authorizer.ts'
import type { User } from '../user.ts'
import { type ConfiguredAuthorizer, createAuthorizer, createChainAuthorizer } from './index.ts'
import { createWebhookAuthorizer } from './webhook.ts'

const jane: User = { name: 'jane', uid: 'u', groups: ['dev'], extra: { a: ['b'] } }
const root: User = { ...jane, groups: ['system:masters'] }
const get = resourceAccess({ verb: 'get', resource: 'pods', namespace: 'n1', name: 'x' })

function saying(verdict: Partial<Verdict>, later = false): Authorizer {
  const whole = { allowed: false, denied: false, reason: '', ...verdict }
  return {
    authorize: () => (later ? Promise.resolve(whole) : whole),
    rulesFor: () => ({ ...NO_RULES, incomplete: later }),
  }
}

describe('authorizers of --authorization-mode', () => {
  it('count the decisions that were final in metrics', async () => {
    const metrics = createServerMeters()
    const node = saying({ denied: true }, true)
    await createAuthorizer(['RBAC', 'Node'], { rbac: saying({}), node, metrics }).authorize(jane, get)
    await createAuthorizer(['RBAC'], { rbac: saying({ allowed: true }), metrics }).authorize(jane, get)
    await createAuthorizer(['RBAC'], { rbac: saying({}), metrics }).authorize(root, get)
    assert.deepEqual(metrics.registry.render().match(/^apiserver_authorization_decisions_total\S+ \d+$/gm), [
      'apiserver_authorization_decisions_total{decision="allowed",name="rbac",type="RBAC"} 1',
      'apiserver_authorization_decisions_total{decision="denied",name="node",type="Node"} 1',
    ])
  })

  it('run in order until one allows or denies the request', async () => {
    const table: [Partial<Verdict>, Partial<Verdict>, boolean, string][] = [
      [{ allowed: true, reason: 'a' }, { denied: true }, true, 'a'],
      [{ denied: true, reason: 'never' }, { allowed: true }, false, 'never'],
      [{ reason: 'a' }, { allowed: true, reason: 'b' }, true, 'b'],
      [{ reason: 'a' }, { reason: 'b' }, false, 'a\nb'],
      [{ reason: '' }, { reason: 'b' }, false, 'b'],
    ]
    for (const later of [false, true]) {
      for (const [node, rbac, allowed, reason] of table) {
        const authorizer = createAuthorizer(['Node', 'RBAC'], { node: saying(node, later), rbac: saying(rbac) })
        const verdict = await authorizer.authorize(jane, get)
        assert.deepEqual([verdict.allowed, verdict.reason], [allowed, reason])
        assert.equal((await authorizer.authorize(root, get)).allowed, true)
      }
    }
  })

  it('include AlwaysAllow and AlwaysDeny', async () => {
    assert.equal((await createAuthorizer(['AlwaysAllow'], {}).authorize(jane, get)).allowed, true)
    const deny = createAuthorizer(['AlwaysDeny'], {})
    assert.equal((await deny.authorize(jane, get)).reason, 'Everything is forbidden.')
    assert.equal((await deny.authorize(root, get)).allowed, true)
    assert.equal(createAuthorizer(['AlwaysAllow', 'AlwaysDeny'], {}).rulesFor(jane, 'n').resourceRules.length, 1)
  })

  it('are refused with invalid settings', () => {
    assert.throws(() => createAuthorizer([], {}), /at least one/)
    assert.throws(() => createAuthorizer(['RBAC', 'RBAC'], {}), /more than once/)
    assert.throws(() => createAuthorizer(['ABAC'], {}), /not a valid mode/)
    assert.throws(() => createAuthorizer(['toString'], {}), /not a valid mode/)
    assert.throws(() => createAuthorizer(['Webhook'], {}), /needs settings/)
  })

  it('report evaluation errors unless a later authorizer allows the request', async () => {
    const webhook = { clock: createVirtualClock(), send: () => Promise.reject(new Error('webhook is away')) }
    const authorize = (rbac: Authorizer) => asAuthorize(createAuthorizer(['Webhook', 'RBAC'], { webhook, rbac }))
    await assert.rejects(
      async () => authorize(saying({}))(jane, get),
      (error: StatusError) => error.status.code === 500,
    )
    assert.equal((await authorize(saying({ allowed: true }))(jane, get)).allowed, true)
  })
})

describe('Forbidden errors', () => {
  it("have upstream's text", () => {
    const table: [ReturnType<typeof pathAccess>, string, string][] = [
      [get, '', 'pods "x" is forbidden: User "jane" cannot get resource "pods" in API group "" in the namespace "n1"'],
      [
        resourceAccess({ verb: 'list', group: 'apps', resource: 'deployments', subresource: 'scale' }),
        'why',
        'deployments.apps is forbidden: User "jane" cannot list resource "deployments/scale" in API group "apps" at the cluster scope: why',
      ],
      [pathAccess('get', '/foo'), '', 'forbidden: User "jane" cannot get path "/foo"'],
      [pathAccess('get', '/<script>'), '', 'forbidden: User "jane" cannot get path "/&lt;script&gt;"'],
    ]
    for (const [access, reason, text] of table) assert.equal(forbiddenAccess(jane, access, reason).message, text)
  })
})

describe('authorization webhook', () => {
  it('caches answers, approvals longer than denials', async () => {
    const clock = createVirtualClock()
    const reviews: object[] = []
    let status: Record<string, unknown> = { allowed: true, reason: 'because' }
    const authorizer = createWebhookAuthorizer({
      clock,
      send: (review) => (reviews.push(review), Promise.resolve(status)),
    })
    assert.deepEqual(await authorizer.authorize(jane, get), { allowed: true, denied: false, reason: 'because' })
    await clock.advance(60_000)
    assert.equal((await authorizer.authorize(jane, get)).allowed, true)
    assert.equal(reviews.length, 1)
    await clock.advance(240_001)
    status = { allowed: false }
    assert.equal((await authorizer.authorize(jane, get)).allowed, false)
    await clock.advance(30_001)
    await authorizer.authorize(jane, get)
    assert.equal(reviews.length, 3)
    assert.deepEqual(reviews[0], {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: {
        resourceAttributes: { namespace: 'n1', verb: 'get', resource: 'pods', name: 'x' },
        user: 'jane',
        groups: ['dev'],
        extra: { a: ['b'] },
        uid: 'u',
      },
    })
  })

  it('gets label and field selectors as requirements', async () => {
    const reviews: object[] = []
    const authorizer = createWebhookAuthorizer({
      clock: createVirtualClock(),
      version: 'v1beta1',
      send: (review) => (reviews.push(review), Promise.resolve({})),
    })
    const list = {
      verb: 'list',
      resource: 'pods',
      fieldSelector: 'spec.nodeName=a',
      labelSelector: 'x in (b,c),!y,z>1',
    }
    await authorizer.authorize({ ...jane, extra: {}, uid: '' }, resourceAccess(list))
    assert.deepEqual((reviews[0] as { spec: unknown }).spec, {
      resourceAttributes: {
        verb: 'list',
        resource: 'pods',
        fieldSelector: { requirements: [{ key: 'spec.nodeName', operator: 'In', values: ['a'] }] },
        labelSelector: {
          requirements: [
            { key: 'x', operator: 'In', values: ['b', 'c'] },
            { key: 'y', operator: 'DoesNotExist' },
          ],
        },
      },
      user: 'jane',
      group: ['dev'],
    })
  })

  it('is called only if its match conditions are true', async () => {
    const reviews: object[] = []
    const authorizer = (failurePolicy: 'NoOpinion' | 'Deny', ...sources: readonly string[]): Authorizer =>
      createWebhookAuthorizer({
        clock: createVirtualClock(),
        failurePolicy,
        send: (review) => (reviews.push(review), Promise.resolve({ allowed: true })),
        conditions: sources.map((source) => {
          const compiled = compileAccessCondition(source)
          return compiled.fault === undefined ? compiled : assert.fail(compiled.fault.detail)
        }),
      })
    const met = [
      "request.resourceAttributes.namespace == 'n1'",
      "'dev' in request.groups",
      "request.extra['a'] == ['b']",
    ]
    assert.equal((await authorizer('Deny', ...met).authorize(jane, get)).allowed, true)
    const failing = "request.nonResourceAttributes.path == '/x'"
    const unmet = ["request.resourceAttributes.subresource != ''", failing]
    assert.deepEqual(await authorizer('Deny', failing, ...unmet).authorize(jane, get), NO_OPINION)
    const error = `cel evaluation error: expression '${failing}' resulted in error: no such key: nonResourceAttributes`
    assert.deepEqual(await authorizer('NoOpinion', failing).authorize(jane, get), { ...NO_OPINION, error })
    assert.deepEqual(await authorizer('Deny', failing).authorize(jane, get), { ...NO_OPINION, denied: true, error })
    assert.equal(reviews.length, 1)
  })

  it('gives no opinion with a missing, contradictory or malformed answer', async () => {
    const clock = createVirtualClock()
    const answering = (send: () => Promise<Record<string, unknown>>) =>
      createWebhookAuthorizer({ clock, send }).authorize(jane, get)
    assert.deepEqual(await answering(() => Promise.reject(new Error('away'))), {
      allowed: false,
      denied: false,
      reason: '',
      error: 'away',
    })
    const both = await answering(() => Promise.resolve({ allowed: true, denied: true }))
    assert.deepEqual([both.allowed, both.denied], [false, true])
    const odd = await answering(() => Promise.resolve({ allowed: 'yes', reason: 7 }))
    assert.deepEqual(odd, { allowed: false, denied: false, reason: '' })
  })
})

describe('authorizers of an AuthorizationConfiguration file', () => {
  const clock = createVirtualClock()
  const hook = (name: string, status: Record<string, unknown>, more: object = {}): ConfiguredAuthorizer => ({
    type: 'Webhook',
    name,
    webhook: { clock, send: () => Promise.resolve(status), ...more },
  })

  function create(...first: ConfiguredAuthorizer[]) {
    let apply: (next: readonly ConfiguredAuthorizer[]) => void = () => undefined
    const follow = (listener: typeof apply): void => {
      apply = listener
    }
    const parts = { rbac: saying({ allowed: true, reason: 'rbac' }), node: saying({}) }
    return {
      authorizer: createChainAuthorizer({ first, follow }, parts),
      apply: (...next: typeof first) => apply(next),
    }
  }

  it('run in order, including several webhooks', async () => {
    const { authorizer } = create(hook('a', {}), hook('b', { denied: true, reason: 'b' }), { type: 'RBAC', name: 'r' })
    assert.equal((await authorizer.authorize(jane, get)).reason, 'b')
    assert.equal((await authorizer.authorize(root, get)).allowed, true)
  })

  it('can change between two requests when the file changes', async () => {
    const { authorizer, apply } = create({ type: 'RBAC', name: 'r' })
    assert.equal((await authorizer.authorize(jane, get)).allowed, true)
    apply({ type: 'AlwaysDeny', name: 'no' })
    assert.equal((await authorizer.authorize(jane, get)).allowed, false)
    assert.deepEqual(authorizer.rulesFor(jane, 'n1').resourceRules, [])
    apply(hook('b', { allowed: true, reason: 'hook' }))
    assert.equal((await authorizer.authorize(jane, get)).reason, 'hook')
  })

  it('stay unchanged if the new file adds an authorizer type that was absent at the start', async () => {
    const { authorizer, apply } = create({ type: 'RBAC', name: 'r' })
    assert.throws(() => apply({ type: 'Node', name: 'n' }), {
      message: 'authorizer type Node is not allowed if it was not enabled at initial server startup',
    })
    assert.equal((await authorizer.authorize(jane, get)).reason, 'rbac')
  })

  it('deny a request if a webhook with failurePolicy Deny fails', async () => {
    const send = (): Promise<never> => Promise.reject(new Error('away'))
    const rbac: ConfiguredAuthorizer = { type: 'RBAC', name: 'r' }
    const { authorizer: strict } = create(hook('a', {}, { send, failurePolicy: 'Deny' }), rbac)
    assert.deepEqual(await strict.authorize(jane, get), { allowed: false, denied: true, reason: '', error: 'away' })
    const { authorizer: lenient } = create(hook('a', {}, { send, failurePolicy: 'NoOpinion' }), rbac)
    assert.equal((await lenient.authorize(jane, get)).allowed, true)
  })
})
