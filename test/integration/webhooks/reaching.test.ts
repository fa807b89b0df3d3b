/** Tests admission webhooks that are called through a Service, and those whose rules match custom resources. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'

import { CONFIG_MAPS, configMap, type HookedPlane, patch, rule, startHookedPlane } from './hooked-plane.ts'

type Json = Record<string, unknown>

const ADDRESS = '10.9.8.7'
const SPACE = '/api/v1/namespaces/default'

describe('a webhook behind a Service', () => {
  let hooked: HookedPlane
  before(async () => {
    const routeTo = (address: string): string => (address === ADDRESS ? '127.0.0.1' : address)
    hooked = await startHookedPlane({ network: { lookup: () => Promise.resolve([]), routeTo } })
    hooked.respond('/in', () => patch({ op: 'add', path: '/data/by', value: 'service' }))
    const spec = { ports: [{ port: 443, targetPort: hooked.server.port }] }
    await hooked.request('POST', `${SPACE}/services`, { metadata: { name: 'hook' }, spec })
    const service = { namespace: 'default', name: 'hook', path: '/in' }
    const clientConfig = { service, caBundle: hooked.server.caBundle }
    await hooked.configure('mutating', 'w', [{ name: 'in.ex.io', clientConfig }])
  })
  after(() => hooked[Symbol.asyncDispose]())

  const created = async (name: string): Promise<Json> =>
    (await hooked.request('POST', CONFIG_MAPS, configMap(name))).json()

  it('cannot be called without endpoints', async () => {
    const { message } = await created('early')
    const post = 'Post "https://hook.default.svc:443/in?timeout=5s": no endpoints available for service "hook"'
    assert.equal(message, `Internal error occurred: failed calling webhook "in.ex.io": failed to call webhook: ${post}`)
  })

  it('is called through Endpoints and EndpointSlices', async () => {
    const endpoints = {
      metadata: { name: 'hook' },
      subsets: [{ addresses: [{ ip: ADDRESS }], ports: [{ port: hooked.server.port }] }],
    }
    assert.equal((await hooked.request('POST', `${SPACE}/endpoints`, endpoints)).status, 201)
    assert.deepEqual((await created('endpoints'))['data'], { a: '1', by: 'service' })
    await hooked.request('DELETE', `${SPACE}/endpoints/hook`)
    const slice = {
      metadata: { name: 'hook-1', labels: { 'kubernetes.io/service-name': 'hook' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [ADDRESS] }],
      ports: [{ name: '', port: hooked.server.port }],
    }
    const path = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'
    assert.equal((await hooked.request('POST', path, slice)).status, 201)
    assert.deepEqual((await created('slices'))['data'], { a: '1', by: 'service' })
    assert.equal(hooked.server.asked.at(-1)?.headers.host, 'hook.default.svc')
  })
})

const WIDGETS = '/apis/ex.io/v1/namespaces/default/widgets'

function definition(plural = 'widgets', kind = 'Widget'): Json {
  const spec = (fields: Json): Json => ({ type: 'object', properties: fields })
  const version = (name: string, fields: Json): Json => ({
    name,
    served: true,
    storage: name === 'v1',
    schema: { openAPIV3Schema: { type: 'object', properties: { spec: spec(fields) } } },
  })
  const text = { type: 'string' }
  return {
    metadata: { name: `${plural}.ex.io` },
    spec: {
      group: 'ex.io',
      scope: 'Namespaced',
      names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
      versions: [version('v1', { a: text, d: { ...text, default: 'here' } }), version('v2', { a: text, b: text })],
    },
  }
}

describe('a webhook for custom resources', () => {
  let hooked: HookedPlane
  before(async () => {
    hooked = await startHookedPlane()
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    assert.equal((await hooked.request('POST', path, definition())).status, 201)
    for (let status = 404; status === 404;) status = (await hooked.request('GET', WIDGETS)).status
  })
  after(() => hooked[Symbol.asyncDispose]())
  afterEach(() => hooked.reset())

  const widgets = (more: Json = {}): Json => rule('widgets', { apiGroups: ['ex.io'], operations: ['*'], ...more })
  const create = (name: string, version = 'v1', spec: Json = { a: '1' }): ReturnType<HookedPlane['request']> =>
    hooked.request('POST', WIDGETS.replace('v1', version), {
      apiVersion: `ex.io/${version}`,
      kind: 'Widget',
      metadata: { name },
      spec,
    })

  it('can reject their creation, change and deletion', async () => {
    assert.equal((await create('kept')).status, 201)
    hooked.respond('/x', () => ({ allowed: false, status: { message: 'no' } }))
    await hooked.configure('validating', 'w', [{ name: 'x.ex.io', rules: [widgets()] }])
    const merge = { 'content-type': 'application/merge-patch+json' }
    const answers = [
      await create('new'),
      await hooked.request('PATCH', `${WIDGETS}/kept`, { spec: { a: '2' } }, merge),
      await hooked.request('DELETE', `${WIDGETS}/kept`),
    ]
    const message = 'admission webhook "x.ex.io" denied the request: no'
    for (const answer of answers) assert.deepEqual([answer.status, answer.json()['message']], [400, message])
  })

  it('can change them; unknown fields are pruned, and defaults apply afterwards', async () => {
    hooked.respond('/x', () => patch({ op: 'replace', path: '/spec', value: { a: '2', zork: true } }))
    await hooked.configure('mutating', 'w', [{ name: 'x.ex.io', rules: [widgets()] }])
    assert.deepEqual((await create('changed')).json()['spec'], { a: '2', d: 'here' })
  })

  it('gets them in the version of its rule', async () => {
    hooked.respond('/x', () => patch({ op: 'replace', path: '/spec/a', value: 'seen' }))
    await hooked.configure('mutating', 'w', [{ name: 'x.ex.io', rules: [widgets()] }])
    const { apiVersion, spec } = (await create('other', 'v2', { a: '1' })).json()
    assert.deepEqual([apiVersion, (spec as Json)['a']], ['ex.io/v2', 'seen'])
    const [{ kind, requestKind, object } = assert.fail('Nobody asked')] = hooked.requests('/x')
    assert.deepEqual(
      [kind, requestKind],
      [
        { group: 'ex.io', version: 'v1', kind: 'Widget' },
        { group: 'ex.io', version: 'v2', kind: 'Widget' },
      ],
    )
    assert.equal(object?.['apiVersion'], 'ex.io/v1')
  })

  it('can reject CustomResourceDefinitions', async () => {
    hooked.respond('/x', () => ({ allowed: false }))
    const rules = [rule('customresourcedefinitions', { apiGroups: ['apiextensions.k8s.io'] })]
    await hooked.configure('validating', 'w', [{ name: 'x.ex.io', rules }])
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    const { status, text } = await hooked.request('POST', path, definition('gadgets', 'Gadget'))
    assert.deepEqual([status, text.includes('denied the request')], [400, true])
  })
})
