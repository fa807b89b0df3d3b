/** Tests custom resources whose versions a webhook converts. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Custom, definition, type Json, MERGE, object, specSchema, TABLE } from './custom-kit.ts'
import { startWebhookServer, type WebhookServer } from './webhooks/webhook-server.ts'

let custom: Custom
let hook: WebhookServer
/** The webhook's response to a review; by default a correct conversion. */
let answering: (review: Json) => unknown
before(async () => {
  custom = await Custom.start()
  hook = await startWebhookServer()
  hook.on('/convert', ({ review }) => answering(review))
  const columns = (path: string): object[] => [{ name: 'Host', type: 'string', jsonPath: path }]
  await custom.define(
    definition('Conv', {
      versions: [
        {
          name: 'v1',
          schema: specSchema({ hostPort: { type: 'string' } }),
          additionalPrinterColumns: columns('.spec.hostPort'),
          selectableFields: [{ jsonPath: '.spec.hostPort' }],
        },
        {
          name: 'v2',
          schema: specSchema({ host: { type: 'string' }, port: { type: 'string' } }),
          additionalPrinterColumns: columns('.spec.host'),
          selectableFields: [{ jsonPath: '.spec.host' }],
        },
      ],
      spec: {
        conversion: {
          strategy: 'Webhook',
          webhook: {
            clientConfig: { url: hook.url('/convert'), caBundle: hook.caBundle },
            conversionReviewVersions: ['v3', 'v1', 'v1beta1'],
          },
        },
      },
    }),
  )
})
after(async () => {
  await custom.plane.stop()
  await hook.close()
})

const V1 = '/apis/ex.io/v1/namespaces/default/convs'
const V2 = '/apis/ex.io/v2/namespaces/default/convs'

function converted({ spec, ...rest }: Json, apiVersion: string): Json {
  if (apiVersion === 'ex.io/v2') {
    const [host, port] = (spec.hostPort ?? '').split(':')
    return { ...rest, apiVersion, spec: { host, port } }
  }
  return { ...rest, apiVersion, spec: { hostPort: `${spec.host}:${spec.port}` } }
}

const respond = (
  { request, ...review }: Json,
  change: (objects: Json[], response: Json) => unknown = () => {},
): Json => {
  const objects = request.objects.map((one: Json) => converted(one, request.desiredAPIVersion))
  const response: Json = { uid: request.uid, result: { status: 'Success' }, convertedObjects: objects }
  change(objects, response)
  return { kind: review.kind, apiVersion: review.apiVersion, response }
}

describe('a conversion webhook', () => {
  before(async () => {
    answering = (review) => respond(review)
    await custom.must('POST', V1, object('Conv', 'x', { spec: { hostPort: 'h:1' } }))
    await custom.must('POST', V2, object('Conv', 'y', { spec: { host: 'g', port: '2' } }, 'ex.io/v2'))
  })

  it('converts reads, writes and lists in the other version', async () => {
    assert.deepEqual((await custom.must('GET', `${V1}/y`)).spec, { hostPort: 'g:2' })
    hook.asked.length = 0
    const shown = await custom.must('GET', `${V2}/x`)
    assert.deepEqual([shown.apiVersion, shown.spec], ['ex.io/v2', { host: 'h', port: '1' }])
    const [asked] = hook.asked
    assert.match(asked?.url ?? '', /^\/convert\?timeout=30s$/)
    assert.deepEqual(
      [asked?.headers['user-agent'], asked?.headers.accept],
      ['kube-apiserver-admission', 'application/json, */*'],
    )
    const { request, response, ...review } = (asked as NonNullable<typeof asked>).review as Json
    assert.deepEqual(review, { kind: 'ConversionReview', apiVersion: 'apiextensions.k8s.io/v1' })
    assert.deepEqual(response, { uid: '', convertedObjects: null, result: { metadata: {} } })
    assert.equal(request.desiredAPIVersion, 'ex.io/v2')
    assert.deepEqual([request.objects.length, request.objects[0].spec], [1, { hostPort: 'h:1' }])
    await custom.must('GET', `${V2}/x`)
    assert.equal(hook.asked.length, 1, 'what was converted once is remembered')
    const list = await custom.must('GET', V2)
    assert.deepEqual(
      list.items.map(({ spec }: Json) => spec),
      [
        { host: 'h', port: '1' },
        { host: 'g', port: '2' },
      ],
    )
    const table = await custom.must('GET', V2, undefined, TABLE)
    assert.deepEqual(
      table.rows.map(({ cells }: Json) => cells),
      [
        ['x', 'h'],
        ['y', 'g'],
      ],
    )
    const { items } = await custom.must('GET', `${V2}?fieldSelector=spec.host%3Dg`)
    assert.deepEqual(
      items.map(({ metadata }: Json) => metadata.name),
      ['y'],
    )
    const patched = await custom.must('PATCH', `${V2}/x`, { spec: { port: '9' } }, MERGE)
    assert.deepEqual(patched.spec, { host: 'h', port: '9' })
    assert.deepEqual((await custom.must('GET', `${V1}/x`)).spec, { hostPort: 'h:9' })
  })

  it('converts watched objects', async () => {
    const watching = await custom.watch(`${V2}?watch=true&fieldSelector=spec.host%3Dw`)
    const events = watching.setEncoding('utf8')[Symbol.asyncIterator]()
    const next = async (): Promise<Json> => JSON.parse((await events.next()).value as string)
    await custom.must('POST', V1, object('Conv', 'w', { spec: { hostPort: 'w:1' } }))
    const added = await next()
    assert.deepEqual(
      [added.type, added.object.apiVersion, added.object.spec],
      ['ADDED', 'ex.io/v2', { host: 'w', port: '1' }],
    )
    await custom.must('PATCH', `${V1}/w`, { spec: { hostPort: 'w:2' } }, MERGE)
    assert.deepEqual([(await next()).type], ['MODIFIED'])
    await custom.must('PATCH', `${V1}/w`, { spec: { hostPort: 'z:2' } }, MERGE)
    const gone = await next()
    assert.deepEqual([gone.type, gone.object.spec], ['DELETED', { host: 'w', port: '2' }])
    watching.destroy()
  })

  it('may change only labels and annotations in metadata', async () => {
    answering = (review) =>
      respond(review, ([one]) => {
        one.metadata = { ...one.metadata, labels: { by: 'hook' }, finalizers: ['a/b'], generation: 77 }
        one.spec.zork = 1
      })
    await custom.must('POST', V1, object('Conv', 'meta', { spec: { hostPort: 'm:1' } }))
    const { metadata, spec } = await custom.must('GET', `${V2}/meta`)
    assert.deepEqual([metadata.labels, metadata.finalizers, metadata.generation], [{ by: 'hook' }, undefined, 1])
    assert.deepEqual(spec, { host: 'm', port: '1' })
    answering = (review) => respond(review)
  })

  it('converts the response to a write in the other version', async () => {
    answering = (review) => respond(review, ([one]) => (one.metadata.annotations = { by: 'hook' }))
    const body = object('Conv', 'back', { spec: { host: 'k', port: '1' } }, 'ex.io/v2')
    hook.asked.length = 0
    const { metadata, spec, apiVersion } = await custom.must('POST', V2, body)
    assert.deepEqual([metadata.annotations, spec, apiVersion], [{ by: 'hook' }, { host: 'k', port: '1' }, 'ex.io/v2'])
    assert.deepEqual(
      hook.asked.map(({ review }) => (review as Json).request.desiredAPIVersion),
      ['ex.io/v1', 'ex.io/v2'],
    )
    answering = (review) => respond(review)
  })
})

describe('a conversion webhook with an invalid response', () => {
  const prefix = '500 conversion webhook for ex.io/v1, Kind=Conv '
  const faults: readonly (readonly [what: string, answer: (review: Json) => unknown, message: string | RegExp])[] = [
    [
      'returns another uid',
      (review) => respond(review, (_, response) => (response.uid = 'zzz')),
      /^500 conversion webhook for ex.io\/v1, Kind=Conv failed: expected response.uid="[0-9a-f-]{36}", got "zzz"$/,
    ],
    [
      'reports a reason',
      (review) =>
        respond(review, (_, response) => (response.result = { status: 'Failed', message: 'cannot convert this' })),
      `${prefix}failed: cannot convert this`,
    ],
    [
      'reports a failure',
      (review) => respond(review, (_, response) => (response.result = { status: 'Failed' })),
      `${prefix}failed: response.result.status was 'Failed', not 'Success'`,
    ],
    ['returns nothing', ({ kind, apiVersion }) => ({ kind, apiVersion }), `${prefix}failed: no response provided`],
    [
      'loses objects',
      (review) => respond(review, (_, response) => (response.convertedObjects = [])),
      `${prefix}returned 0 objects, expected 1`,
    ],
    [
      'does not convert objects',
      (review) => respond(review, ([one]) => (one.apiVersion = 'ex.io/v1')),
      `${prefix}returned invalid object at index 0: invalid groupVersion (expected ex.io/v2, received ex.io/v1)`,
    ],
    [
      'changes the identity of objects',
      (review) => respond(review, ([one]) => (one.kind = 'Foo')),
      `${prefix}returned invalid object at index 0: invalid kind (expected Conv, received Foo)`,
    ],
    [
      'renames objects',
      (review) => respond(review, ([one]) => (one.metadata.name = 'zzz')),
      `${prefix}returned invalid object: must have the same name: bad != zzz`,
    ],
    [
      'reorders objects',
      (review) => respond(review, ([one]) => (one.metadata.namespace = 'zzz')),
      `${prefix}returned invalid object: must have the same namespace: default != zzz`,
    ],
    [
      'uses another review version',
      (review) => ({ ...respond(review), apiVersion: 'apiextensions.k8s.io/v1beta1' }),
      `${prefix}failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion`,
    ],
    [
      'returns another kind',
      (review) => ({ ...respond(review), kind: 'Foo' }),
      `${prefix}failed: no kind "Foo" is registered for version "apiextensions.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"`,
    ],
    [
      'returns invalid JSON',
      () => '{nope',
      `${prefix}failed: couldn't get version/kind; json parse error: invalid character 'n' looking for beginning of object key string`,
    ],
  ]

  before(() => custom.must('POST', V1, object('Conv', 'bad', { spec: { hostPort: 'b:1' } })))
  after(() => {
    answering = (review) => respond(review)
  })

  it('causes an error and increments a metric if it fails or is unreachable', async () => {
    let answered = 0
    hook.on('/fails', (_, response) => void (answered++, response.writeHead(500).end('boom text')))
    const where = (url: string): Promise<Json> =>
      custom.redefine('convs.ex.io', ({ conversion }) => (conversion.webhook.clientConfig.url = url))
    await where(hook.url('/fails'))
    assert.equal(
      await custom.refused('GET', `${V2}/bad`),
      `${prefix}failed: an error on the server ("boom text") has prevented the request from succeeding`,
    )
    await where('https://127.0.0.1:1/gone')
    assert.equal(
      await custom.refused('GET', `${V2}/bad`),
      `${prefix}failed: Post "https://127.0.0.1:1/gone?timeout=30s": dial tcp 127.0.0.1:1: connect: connection refused`,
    )
    await where(hook.url('/convert'))
    assert.ok(answered > 0)
    const { text } = await custom.ask('GET', '/metrics')
    for (const series of [
      // All versions together count as one collection.
      'apiserver_resource_objects{group="ex.io",resource="convs"} ',
      'apiserver_conversion_webhook_request_total{failure_type="",result="success"} ',
      'apiserver_conversion_webhook_request_total{failure_type="conversion_webhook_call_failure",result="failure"} 2',
      'apiserver_conversion_webhook_duration_seconds_bucket{failure_type="",result="success",le="0.005"} ',
      'apiserver_crd_conversion_webhook_duration_seconds_count{crd_name="convs.ex.io",from_version="v1",succeeded="false",to_version="v2"} 2',
    ]) {
      assert.ok(text.includes(`\n${series}`), `${series}\n${text.match(/.*conversion_webhook.*/g)?.join('\n')}`)
    }
  })

  for (const [what, answer, message] of faults) {
    it(`makes the request fail if it ${what}`, async () => {
      answering = answer
      const refusal = await custom.refused('GET', `${V2}/bad`)
      if (typeof message === 'string') assert.equal(refusal, message)
      else assert.match(refusal, message)
    })
  }

  it('affects only its own version', async () => {
    answering = (review) => respond(review, (_, response) => (response.result = { message: 'no' }))
    const path = `${V2}/bad`
    const failed = `${prefix}failed: no`
    assert.equal(await custom.refused('GET', V2), failed)
    assert.equal(await custom.refused('DELETE', path), failed)
    assert.equal(
      await custom.refused('POST', V2, object('Conv', 'new', { spec: { host: 'n', port: '1' } }, 'ex.io/v2')),
      '500 conversion webhook for ex.io/v2, Kind=Conv failed: no',
    )
    assert.equal(
      await custom.refused('GET', `${V2}?watch=true`),
      `429 storage is (re)initializing: failed to list ex.io/v2, Kind=Conv: conversion webhook for ex.io/v1, Kind=Conv failed: no`,
    )
    assert.match(await custom.refused('DELETE', `${V2}/none`), /^404 /)
    assert.equal((await custom.must('GET', `${V1}/bad`)).spec.hostPort, 'b:1')
  })

  for (const [kind, prefixes] of [
    ['mutating', 'Internal error occurred: Internal error occurred: '],
    ['validating', 'Internal error occurred: '],
  ] as const) {
    it(`fails requests with ${kind} webhooks for the other version`, async () => {
      const path = `/apis/admissionregistration.k8s.io/v1/${kind}webhookconfigurations`
      const webhook = {
        name: 'other.ex.io',
        clientConfig: { url: hook.url('/admit'), caBundle: hook.caBundle },
        rules: [{ operations: ['CREATE'], apiGroups: ['ex.io'], apiVersions: ['v2'], resources: ['convs'] }],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      }
      await custom.must('POST', path, { metadata: { name: 'other' }, webhooks: [webhook] })
      answering = (review) => respond(review, (_, response) => (response.result = { message: 'no' }))
      const body = object('Conv', 'unseen', { spec: { hostPort: 'u:1' } })
      const why = 'conversion webhook for ex.io/v1, Kind=Conv failed: no'
      assert.equal(await custom.refused('POST', V1, body), `500 ${prefixes}${why}`)
      await custom.must('DELETE', `${path}/other`)
    })
  }
})
