/**
 * Tests how the server handles responses of admission webhooks: refusals, patches, warnings, annotations, and invalid
 * responses.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'node:test'

import type { ControlPlaneResponse } from '#testing/control-plane.ts'

import {
  CONFIG_MAPS,
  configMap,
  type HookedPlane,
  patch,
  type Responding,
  rule,
  startHookedPlane,
} from './hooked-plane.ts'

type Json = Record<string, unknown>

const dir = mkdtempSync(join(tmpdir(), 'hyperkube-webhooks-'))
const log = join(dir, 'audit.log')
const POLICY = 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{ level: Request }]\n'

describe('response of an admission webhook', () => {
  let hooked: HookedPlane
  let count = 0
  before(async () => {
    hooked = await startHookedPlane({
      files: new Map([['policy', POLICY]]),
      settings: { 'audit-log-path': log, 'audit-policy-file': 'policy' },
    })
  })
  after(async () => {
    await hooked[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true })
  })
  afterEach(() => hooked.reset())

  const create = (name = `c${count++}`, more: Json = {}): Promise<ControlPlaneResponse> =>
    hooked.request('POST', CONFIG_MAPS, configMap(name, more))
  /** A webhook that answers so, and the answer to the one who creates a ConfigMap then. */
  const answering = async (
    responding: Responding,
    kind: 'mutating' | 'validating' = 'validating',
    more: Json = {},
  ): Promise<Json> => {
    await hooked.reset()
    hooked.respond('/x', responding)
    const { status, text } = await hooked.configure(kind, 'w', [{ name: 'x.ex.io', ...more }])
    assert.equal(status, 201, text)
    return (await create()).json()
  }
  const stored = async (name: string): Promise<Json> => (await hooked.request('GET', `${CONFIG_MAPS}/${name}`)).json()
  const annotations = (): Json => {
    const lines = readFileSync(log, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Json)
    const last = lines.findLast(
      (event) => event['verb'] === 'create' && (event['objectRef'] as Json)['resource'] === 'configmaps',
    )
    return last?.['annotations'] as Json
  }

  it('rejects the request with its status', async () => {
    const table: readonly (readonly [status: Json | undefined, told: Json])[] = [
      [undefined, { code: 400, message: 'admission webhook "x.ex.io" denied the request without explanation' }],
      [{ message: 'no way' }, { code: 400, message: 'admission webhook "x.ex.io" denied the request: no way' }],
      [
        { reason: 'BecauseReason' },
        {
          code: 400,
          reason: 'BecauseReason',
          message: 'admission webhook "x.ex.io" denied the request: BecauseReason',
        },
      ],
      [
        { code: 409, reason: 'Conflict', message: 'm', details: { causes: [{ message: 'c' }] } },
        {
          code: 409,
          reason: 'Conflict',
          message: 'admission webhook "x.ex.io" denied the request: m',
          details: { causes: [{ message: 'c' }] },
        },
      ],
      [
        { code: 200, status: 'Success', message: 'm' },
        { code: 400, message: 'admission webhook "x.ex.io" denied the request: m' },
      ],
    ]
    for (const [status, told] of table) {
      const answer = await answering(() => ({ allowed: false, ...(status && { status }) }))
      assert.deepEqual(answer, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', ...told })
    }
    await answering(() => ({ allowed: false, status: { code: 429, details: { retryAfterSeconds: 7 } } }))
    assert.equal((await create()).headers.get('retry-after'), '7')
    assert.equal((await answering(() => ({ allowed: true, status: { message: 'fine' } })))['kind'], 'ConfigMap')
  })

  it('fails the request if it is invalid', async () => {
    const table: readonly (readonly [responding: Responding, why: string, kind?: 'mutating'])[] = [
      [
        () => ({ uid: 'zzz', allowed: true }),
        'received invalid webhook response: expected response.uid="UID", got "zzz"',
      ],
      [
        () => ({ patch: 'W10=' }),
        'received invalid webhook response: validating webhook may not return response.patch',
      ],
      [
        () => ({ patchType: 'JSONPatch' }),
        'received invalid webhook response: validating webhook may not return response.patchType',
      ],
      [
        () => ({ allowed: true, patch: 'W10=' }),
        'received invalid webhook response: webhook returned response.patch but not response.patchType',
        'mutating',
      ],
      [
        () => ({ allowed: true, patchType: 'JSONPatch' }),
        'received invalid webhook response: webhook returned response.patchType but not response.patch',
        'mutating',
      ],
      [
        () => ({ allowed: true, patchType: 'JSONPatch', patch: Buffer.from('not').toString('base64') }),
        "received undecodable patch in webhook response: invalid character 'o' in literal null (expecting 'u')",
        'mutating',
      ],
      [() => ({ ...patch({ op: 'add' }), patchType: 'Foo' }), 'unsupported patch type "Foo"', 'mutating'],
    ]
    for (const [responding, why, kind] of table) {
      const answer = await answering(responding, kind)
      const uid = hooked.requests('/x')[0]?.uid ?? ''
      const text = `failed calling webhook "x.ex.io": ${why.replace('UID', uid)}`
      assert.deepEqual(answer, {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: `Internal error occurred: ${text}`,
        reason: 'InternalError',
        details: { causes: [{ message: text }] },
        code: 500,
      })
      assert.equal((await answering(responding, kind, { failurePolicy: 'Ignore' }))['kind'], 'ConfigMap')
    }
  })

  it('must be an AdmissionReview', async () => {
    const table: readonly (readonly [body: unknown, why: string])[] = [
      [
        { kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1' },
        'received invalid webhook response: webhook response was absent',
      ],
      [
        { kind: 'Foo', apiVersion: 'admission.k8s.io/v1' },
        'failed to call webhook: no kind "Foo" is registered for version "admission.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"',
      ],
      [
        { kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1beta1' },
        'failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion',
      ],
      ['', 'failed to call webhook: 0-length response with status code: 200 and content type: application/json'],
    ]
    await hooked.configure('validating', 'w', [{ name: 'x.ex.io' }])
    for (const [body, why] of table) {
      hooked.server.on('/x', () => body)
      assert.equal(
        (await create()).json()['message'],
        `Internal error occurred: failed calling webhook "x.ex.io": ${why}`,
      )
    }
    hooked.server.on('/x', ({ review }) => ({ response: { uid: (review['request'] as Json)['uid'], allowed: true } }))
    assert.match(
      String((await create()).json()['message']),
      /invalid webhook response: expected webhook response of admission.k8s.io\/v1, Kind=AdmissionReview, got \/, Kind=$/,
    )
  })

  it('can change the object, and defaults apply afterwards', async () => {
    hooked.respond('/x', () =>
      patch({ op: 'add', path: '/data/b', value: '2' }, { op: 'add', path: '/zork', value: 1 }),
    )
    await hooked.configure('mutating', 'w', [{ name: 'x.ex.io' }])
    assert.deepEqual((await create('changed')).json()['data'], { a: '1', b: '2' })
    assert.equal((await stored('changed'))['zork'], undefined)
    const { metadata } = (await stored('changed')) as { metadata: { managedFields: Json[] } }
    assert.doesNotMatch(JSON.stringify(metadata.managedFields), /f:b/)
    await hooked.reset()
    const container = { name: 'added', image: 'i' }
    hooked.respond('/x', () => patch({ op: 'add', path: '/spec/containers/-', value: container }))
    await hooked.configure('mutating', 'w', [{ name: 'x.ex.io', rules: [rule('pods')] }])
    const pod = {
      metadata: { name: 'p' },
      spec: { automountServiceAccountToken: false, containers: [{ name: 'c', image: 'i' }] },
    }
    const { spec } = (await hooked.request('POST', '/api/v1/namespaces/default/pods', pod)).json() as {
      spec: { containers: Json[] }
    }
    assert.equal(spec.containers[1]?.['terminationMessagePath'], '/dev/termination-log')
    assert.equal(spec.containers[1]?.['imagePullPolicy'], 'Always')
  })

  it('can change the name of a new object', async () => {
    hooked.respond('/x', () => patch({ op: 'replace', path: '/metadata/name', value: 'renamed' }))
    await hooked.configure('mutating', 'w', [{ name: 'x.ex.io' }])
    assert.equal((await create('named')).status, 201)
    assert.equal((await stored('renamed'))['kind'], 'ConfigMap')
    assert.equal((await stored('named'))['code'], 404)
  })

  it('fails the request with 500 if its patch does not apply, with any failurePolicy', async () => {
    const table: readonly (readonly [operation: Json, why: string])[] = [
      [
        { op: 'replace', path: '/foo/bar', value: 1 },
        'replace operation does not apply: doc is missing path: /foo/bar: missing value',
      ],
      [{ op: 'test', path: '/metadata/name', value: 'zzz' }, 'testing value /metadata/name failed: test failed'],
      [
        { op: 'replace', path: '/data', value: 'text' },
        'json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string',
      ],
    ]
    for (const [operation, why] of table) {
      const answer = await answering(() => patch(operation), 'mutating', { failurePolicy: 'Ignore' })
      assert.deepEqual([answer['code'], answer['message']], [500, `Internal error occurred: ${why}`])
    }
    const invalid = await answering(
      () => patch({ op: 'add', path: '/metadata/labels', value: { 'a b': 'c' } }),
      'mutating',
    )
    assert.deepEqual([invalid['code'], invalid['reason']], [422, 'Invalid'])
  })

  it('cannot change a deleted object', async () => {
    await create('doomed')
    hooked.respond('/x', () => patch({ op: 'add', path: '/data/b', value: '2' }))
    await hooked.configure('mutating', 'w', [
      { name: 'x.ex.io', rules: [rule('configmaps', { operations: ['DELETE'] })] },
    ])
    const { message, code } = (await hooked.request('DELETE', `${CONFIG_MAPS}/doomed`)).json()
    const why = 'admission webhook "x.ex.io" attempted to modify the object, which is not supported for this operation'
    assert.deepEqual([code, message], [500, `Internal error occurred: ${why}`])
  })

  it('returns warnings once each, without those that are invalid headers', async () => {
    hooked.respond('/x', () => ({
      allowed: true,
      warnings: ['first', 'say "it"', 'first', '', 'a\nb', 'x'.repeat(300)],
    }))
    await hooked.configure('validating', 'w', [{ name: 'x.ex.io' }])
    const { headers } = await create()
    assert.equal(headers.get('warning'), `299 - "first", 299 - "say \\"it\\"", 299 - "${'x'.repeat(300)}"`)
    hooked.respond('/x', () => ({ allowed: false, warnings: ['refused'] }))
    assert.equal((await create()).headers.get('warning'), '299 - "refused"')
    hooked.respond('/x', () => ({ allowed: true, warnings: ['1', '2', '3'].map((end) => 'y'.repeat(2000) + end) }))
    assert.equal((await create()).headers.get('warning'), [1, 2, 3].map(() => `299 - "${'y'.repeat(256)}"`).join(', '))
  })

  it('appears in the audit log', async () => {
    hooked.respond('/m', () => ({
      ...patch({ op: 'add', path: '/data/b', value: '2' }),
      auditAnnotations: { k: 'v', 'not a key!': 'x' },
    }))
    hooked.respond('/ok', () => ({ allowed: true }))
    await hooked.configure('mutating', 'w', [{ name: 'm.ex.io' }, { name: 'ok.ex.io' }])
    await hooked.configure('validating', 'v', [{ name: 'ok.ex.io' }, { name: 'ig.ex.io', failurePolicy: 'Ignore' }])
    assert.equal((await create()).status, 201)
    const own = Object.fromEntries(
      Object.entries(annotations()).filter(([key]) => !/^(authorization|apiserver)/.test(key)),
    )
    assert.deepEqual(own, {
      'm.ex.io/k': 'v',
      'mutation.webhook.admission.k8s.io/round_0_index_0': '{"configuration":"w","webhook":"m.ex.io","mutated":true}',
      'mutation.webhook.admission.k8s.io/round_0_index_1': '{"configuration":"w","webhook":"ok.ex.io","mutated":false}',
      'patch.webhook.admission.k8s.io/round_0_index_0':
        '{"configuration":"w","webhook":"m.ex.io","patch":[{"op":"add","path":"/data/b","value":"2"}],"patchType":"JSONPatch"}',
      'failed-open.validating.webhook.admission.k8s.io/round_0_index_1': 'ig.ex.io',
    })
  })

  it('is requested from one webhook after the other, by configuration and list, and again after changes', async () => {
    const names = ['1', '2', '3', '4']
    const add =
      (name: string): Responding =>
      () =>
        patch({ op: 'add', path: `/data/${name}`, value: name })
    for (const name of names) hooked.respond(`/w${name}`, add(name))
    const seenBy = (): string[] =>
      hooked.server.asked.map(({ url, review }) => {
        const { object } = review['request'] as { object: { data: Json } }
        return `${url[2]}:${Object.keys(object.data).join('')}`
      })
    const webhook = (name: string, policy = 'IfNeeded'): Json => ({
      name: `w${name}.ex.io`,
      reinvocationPolicy: policy,
    })
    await hooked.configure('mutating', 'b', [webhook('3', 'Never'), webhook('4')])
    await hooked.configure('mutating', 'a', [webhook('1'), webhook('2')])
    await create()
    // All but the last two see the object once more: of these, one does not want to and nothing changed after the other.
    assert.deepEqual(seenBy(), ['1:a', '2:1a', '3:12a', '4:123a', '1:1234a', '2:1234a'])
    const uids = hooked.server.asked.map(({ review }) => (review['request'] as Json)['uid'])
    assert.equal(new Set(uids).size, 6)
    assert.ok('mutation.webhook.admission.k8s.io/round_1_index_0' in annotations())
    await hooked.reset()
    hooked.respond('/w2', () => patch({ op: 'add', path: '/data/a', value: '1' }))
    await hooked.configure('mutating', 'a', [webhook('1'), webhook('2')])
    await create()
    assert.deepEqual(seenBy(), ['1:a', '2:1a'])
  })

  it('is requested from validating webhooks concurrently, for the final object', async () => {
    let waiting = 0
    let release = (): void => undefined
    const both = new Promise<void>((resolve) => (release = resolve))
    for (const name of ['p', 'q']) {
      hooked.server.on(`/${name}`, ({ review }, response) => {
        const { uid } = review['request'] as Json
        if (++waiting === 2) release()
        void both.then(() =>
          response.end(
            JSON.stringify({
              kind: 'AdmissionReview',
              apiVersion: 'admission.k8s.io/v1',
              response: { uid, allowed: true },
            }),
          ),
        )
      })
    }
    hooked.respond('/m', () => patch({ op: 'add', path: '/data/final', value: 'yes' }))
    await hooked.configure('validating', 'v', [{ name: 'p.ex.io' }, { name: 'q.ex.io' }])
    await hooked.configure('mutating', 'm', [{ name: 'm.ex.io' }])
    assert.equal((await create()).status, 201)
    assert.deepEqual(hooked.requests('/p')[0]?.object?.['data'], { a: '1', final: 'yes' })
  })

  it('in v1beta1 needs no UID and no patch type', async () => {
    const more = { admissionReviewVersions: ['v1beta1'] }
    const { patchType: _, ...rest } = patch({ op: 'add', path: '/data/b', value: '2' })
    const { data } = await answering(() => ({ ...rest, uid: '' }), 'mutating', more)
    assert.deepEqual(data, { a: '1', b: '2' })
  })

  it("may take until the webhook's timeout, without delaying other requests", async () => {
    hooked.server.on('/hangs', () => undefined)
    await hooked.configure('validating', 'w', [{ name: 'hangs.ex.io', timeoutSeconds: 1 }])
    const waiting = create('waits')
    assert.equal(
      (await hooked.request('POST', '/api/v1/namespaces/default/secrets', { metadata: { name: 's' } })).status,
      201,
    )
    const { message } = (await waiting).json()
    const url = `${hooked.server.url('/hangs')}?timeout=1s`
    assert.equal(
      message,
      `Internal error occurred: failed calling webhook "hangs.ex.io": failed to call webhook: Post "${url}": context deadline exceeded`,
    )
    await hooked.reset()
    await hooked.configure('mutating', 'w', [{ name: 'hangs.ex.io', timeoutSeconds: 1, failurePolicy: 'Ignore' }])
    assert.equal((await create('open')).status, 201)
  })

  for (const type of ['mutating', 'validating'] as const)
    it(`fails the write if it takes longer than the request's timeout (${type})`, async () => {
      hooked.server.on('/hangs', () => undefined)
      await hooked.configure(type, 'w', [{ name: 'hangs.ex.io', timeoutSeconds: 30, failurePolicy: 'Ignore' }])
      const { status } = await hooked.request('POST', `${CONFIG_MAPS}?timeout=1s`, configMap('late'))
      assert.equal(status, 504)
      assert.equal(hooked.server.asked[0]?.url, '/hangs?timeout=1s')
      while (hooked.server.open.size > 1) await new Promise((resolve) => setImmediate(resolve))
      assert.equal((await stored('late'))['code'], 404)
    })

  it('has metrics', async () => {
    hooked.respond('/counted', () => ({ allowed: false, status: { code: 777 } }))
    await hooked.configure('validating', 'w', [{ name: 'counted.ex.io' }])
    await create()
    await hooked.reset()
    await hooked.configure('mutating', 'w', [{ name: 'absent.ex.io', failurePolicy: 'Ignore' }])
    await create()
    const { text } = await hooked.request('GET', '/metrics')
    for (const line of [
      'apiserver_admission_webhook_request_total{code="600",name="counted.ex.io",operation="CREATE",rejected="true",type="validating"} 1',
      'apiserver_admission_webhook_rejection_count{error_type="no_error",name="counted.ex.io",operation="CREATE",rejection_code="600",type="validating"} 1',
      'apiserver_admission_webhook_request_total{code="404",name="absent.ex.io",operation="CREATE",rejected="false",type="admit"} 1',
      'apiserver_admission_webhook_fail_open_count{name="absent.ex.io",type="admit"} 1',
    ]) {
      assert.ok(text.includes(line), line)
    }
    assert.match(text, /apiserver_admission_webhook_admission_duration_seconds_count\{name="counted\.ex\.io"/)
  })
})
