/** Tests server-side apply, scale and response formats of custom resources. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import {
  APPLY,
  conditionOf,
  Custom,
  definition,
  JSON_PATCH,
  type Json,
  MERGE,
  object,
  specSchema,
} from './custom-kit.ts'

let custom: Custom
const TEXT = { type: 'string' }
const NUMBER = { type: 'integer' }

before(async () => {
  custom = await Custom.start()
  const part = (more: object): object => ({ type: 'object', properties: { a: TEXT, b: TEXT }, ...more })
  const status = { type: 'object', properties: { replicas: NUMBER, selector: TEXT } }
  await custom.define(
    definition('Sub', {
      versions: [
        {
          name: 'v1',
          schema: specSchema(
            {
              replicas: { ...NUMBER, maximum: 100 },
              mp: {
                type: 'array',
                'x-kubernetes-list-type': 'map',
                'x-kubernetes-list-map-keys': ['k'],
                items: { type: 'object', required: ['k'], properties: { k: TEXT, v: TEXT } },
              },
              st: { type: 'array', 'x-kubernetes-list-type': 'set', items: TEXT },
              nullable: part({ nullable: true }),
              whole: part({ nullable: true, required: ['a', 'b'] }),
              plain: part({}),
              needy: part({ required: ['a', 'b'] }),
            },
            status,
          ),
          subresources: {
            status: {},
            scale: {
              specReplicasPath: '.spec.replicas',
              statusReplicasPath: '.status.replicas',
              labelSelectorPath: '.status.selector',
            },
          },
        },
      ],
    }),
  )
})
after(() => custom.plane.stop())

const SUBS = '/apis/ex.io/v1/namespaces/default/subs'
const apply = (name: string, spec: object, manager = 'one', more: object = {}): Parameters<Custom['ask']> => [
  'PATCH',
  `${SUBS}/${name}?fieldManager=${manager}`,
  object('Sub', name, { spec, ...more }),
  APPLY,
]

describe('null in an applied custom resource', () => {
  for (const field of ['nullable', 'whole']) {
    it(`is kept in the nullable field ${field}`, async () => {
      await custom.must(...apply(field, { [field]: { a: '1', b: '2' } }))
      const { spec } = await custom.must(...apply(field, { [field]: null }))
      assert.deepEqual(spec, { [field]: null })
    })
  }

  for (const field of ['plain', 'needy']) {
    it(`is rejected in the field ${field}, which is not nullable`, async () => {
      await custom.must(...apply(field, { [field]: { a: '1', b: '2' } }))
      assert.equal(
        await custom.refused(...apply(field, { [field]: null })),
        `422 Sub.ex.io "${field}" is invalid: spec.${field}: Invalid value: "null": spec.${field} in body must be of type object: "null"`,
      )
    })
  }

  it('is removed from created and updated objects', async () => {
    const made = await custom.must('POST', SUBS, object('Sub', 'sent', { spec: { plain: null, nullable: null } }))
    assert.deepEqual(made.spec, { nullable: null })
  })
})

describe('server-side apply of a custom resource', () => {
  it('reports fields that cannot be merged, and invalid objects', async () => {
    const prefix = '500 failed to create typed patch object (/c; ex.io/v1, Kind=Sub): '
    assert.equal(
      await custom.refused(...apply('c', { mp: [{ v: '1' }] })),
      `${prefix}.spec.mp: element 0: associative list with keys has an element that omits all key fields ["k"] (and doesn't have default values for any key fields)`,
    )
    assert.equal(
      await custom.refused(...apply('c', { st: ['a', 'a'] })),
      `${prefix}.spec.st: duplicate entries for key [="a"]`,
    )
    assert.equal(
      await custom.refused(...apply('c', { replicas: 101 })),
      '422 Sub.ex.io "c" is invalid: spec.replicas: Invalid value: 101: spec.replicas in body should be less than or equal to 100',
    )
  })

  it('does not change the owners of the status', async () => {
    const applied = await custom.must(...apply('d', { replicas: 1 }, 'one', { status: { replicas: 7 } }))
    assert.equal(applied.status, undefined)
  })
})

describe('scale subresource of a custom resource', () => {
  const path = `${SUBS}/s`
  before(() => custom.must(...apply('s', { replicas: 2 }, 'cap')))

  it('contains the selector if the definition has one', async () => {
    assert.deepEqual((await custom.must('GET', `${path}/scale`)).status, { replicas: 0 })
    await custom.must('PATCH', `${path}/status`, { status: { selector: 'a in (' } }, MERGE)
    assert.equal((await custom.must('GET', `${path}/scale`)).status.selector, 'a in (')
  })

  it('rejects a Scale with another name', async () => {
    const scale = await custom.must('GET', `${path}/scale`)
    assert.equal(
      await custom.refused('PUT', `${path}/scale`, { ...scale, metadata: { ...scale.metadata, name: 'other' } }),
      '400 the name of the object (other) does not match the name on the URL (s)',
    )
    assert.match(await custom.refused('PUT', `${path}/scale`, object('Sub', 's')), /^400 /)
  })

  it('has separate managedFields entries', async () => {
    await custom.must('PATCH', `${path}/scale?fieldManager=hpa`, { spec: { replicas: 3 } }, MERGE)
    const { managedFields } = (await custom.must('GET', path)).metadata
    const entry = managedFields.find((one: Json) => one.subresource === 'scale')
    assert.deepEqual([entry.manager, entry.apiVersion], ['hpa', 'ex.io/v1'])
    const scale = { kind: 'Scale', apiVersion: 'autoscaling/v1', metadata: { name: 's' }, spec: { replicas: 9 } }
    assert.equal(
      await custom.refused('PATCH', `${path}/scale?fieldManager=three`, scale, APPLY),
      '409 Apply failed with 1 conflict: conflict with "hpa" with subresource "scale" using autoscaling/v1: .spec.replicas',
    )
  })
})

describe('media types that a custom resource does not support', () => {
  it('are rejected', async () => {
    const cbor = { 'content-type': 'application/cbor' }
    assert.match(await custom.refused('POST', SUBS, 'x', cbor), /^415 /)
    const answer = await custom.ask('GET', `${SUBS}?watch=true`, undefined, {
      accept: 'application/vnd.kubernetes.protobuf;stream=watch',
    })
    assert.equal(answer.status, 406)
    assert.equal(answer.headers.get('content-type'), 'application/vnd.kubernetes.protobuf')
    assert.match(answer.text, /^k8s\0/)
  })
})

describe('CustomResourceDefinition with an invalid CA bundle', () => {
  const kind = definition('Junk', {
    versions: [{ name: 'v1' }],
    spec: {
      conversion: {
        strategy: 'Webhook',
        webhook: {
          clientConfig: { url: 'https://127.0.0.1:1/', caBundle: Buffer.from('junk').toString('base64') },
          conversionReviewVersions: ['v1'],
        },
      },
    },
  })

  it('is not established, and its objects cannot be reached', async () => {
    await custom.must('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', kind)
    const made = await custom.until(
      'junks.ex.io',
      (one) => conditionOf(one, 'Established')?.reason === 'InvalidCABundle',
    )
    const { status, message } = conditionOf(made, 'Established')
    assert.deepEqual([status, message], ['False', 'The conversion webhook CABundle is invalid'])
    assert.equal(
      await custom.refused('GET', '/apis/ex.io/v1/namespaces/default/junks'),
      '500 Internal error occurred: error resolving resource',
    )
  })
})

describe('unusual requests for a custom resource', () => {
  const one = `${SUBS}/odd`
  const answerOf = async (...asked: Parameters<Custom['ask']>): Promise<{ status: number; body: Json }> => {
    const answer = await custom.ask(...asked)
    return { status: answer.status, body: answer.json() }
  }
  const messageOf = async (...asked: Parameters<Custom['ask']>): Promise<readonly [number, string]> => {
    const { status, body } = await answerOf(...asked)
    return [status, body.message]
  }

  before(() => custom.ask('POST', SUBS, object('Sub', 'odd', { spec: { replicas: 1 } })))

  it('include a POST to the path of an object, which is a create', async () => {
    assert.deepEqual(await messageOf('POST', one, object('Sub', 'odd', {})), [409, 'subs.ex.io "odd" already exists'])
  })

  it('require the apiVersion of the path in any body', async () => {
    const body = { ...object('Sub', 'other', {}), apiVersion: 'v9' }
    const message = 'the API version in the data (v9) does not match the expected API version (ex.io/v1)'
    assert.deepEqual(await messageOf('POST', SUBS, body), [400, message])
  })

  it('fail with the type of metadata that a patch breaks', async () => {
    const [status, message] = await messageOf('PATCH', one, { metadata: 'text' }, MERGE)
    assert.equal(status, 422)
    assert.match(message, /json: cannot unmarshal string into Go value of type v1\.ObjectMeta$/)
  })

  it('fail if a patch removes the kind', async () => {
    const message = ` "" is invalid: patch: Invalid value: "{}": Object 'Kind' is missing in '{}'`
    const patch = [{ op: 'replace', path: '', value: {} }]
    assert.deepEqual(await messageOf('PATCH', one, patch, JSON_PATCH), [422, message])
  })

  it('fail for another kind, except in a patch of the status', async () => {
    const message = 'Other.ex.io "odd" is invalid: kind: Invalid value: "Other": must be Sub'
    assert.deepEqual(await messageOf('PATCH', one, { kind: 'Other' }, MERGE), [422, message])
    const { status, body } = await answerOf('PATCH', `${one}/status`, { kind: 'Other' }, MERGE)
    assert.deepEqual([status, body.kind], [200, 'Sub'])
  })

  it('keep the UID if a patch of the status contains another UID', async () => {
    const { body: stored } = await answerOf('GET', one)
    const { status, body } = await answerOf('PATCH', `${one}/status`, { metadata: { uid: 'other' } }, MERGE)
    assert.deepEqual([status, body.metadata.uid], [200, stored.metadata.uid])
  })
})
