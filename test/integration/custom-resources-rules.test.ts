/**
 * Tests validation ratcheting: after a schema gets stricter, unchanged values of existing objects are not validated
 * again.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Custom, definition, type Json, MERGE, object, specSchema } from './custom-kit.ts'

let custom: Custom
before(async () => {
  custom = await Custom.start()
})
after(() => custom.plane.stop())

const BASE = '/apis/ex.io/v1/namespaces/default/ratchets'
const text = (more: object = {}): object => ({ type: 'string', ...more })

/** With everything no longer than `maxLength`, and by a rule no longer than `size`. */
function schemaOf(maxLength: number, size: number, required: readonly string[] = []): object {
  const rule = { rule: `self.size() <= ${size}` }
  const items = {
    type: 'object',
    required: ['k'],
    properties: { k: text({ maxLength: 9 }), v: text({ maxLength: 9, 'x-kubernetes-validations': [rule] }) },
  }
  return specSchema({
    s: text({ maxLength }),
    l: { type: 'array', maxItems: 9, items: text({ maxLength }) },
    m: {
      type: 'array',
      maxItems: 9,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['k'],
      items,
    },
    req: { type: 'object', required, properties: { x: text() } },
    free: text(),
  })
}

const spec = { s: 'long', l: ['long'], m: [{ k: 'a', v: 'long' }], req: {} }

const patch = (change: object): ReturnType<Custom['ask']> => custom.ask('PATCH', `${BASE}/a`, { spec: change }, MERGE)

async function refusal(change: object): Promise<string> {
  const answer = await patch(change)
  assert.equal(answer.status, 422, answer.text)
  return (answer.json() as Json).message
}

describe('custom resource whose schema became stricter', () => {
  before(async () => {
    await custom.define(definition('Ratchet', { versions: [{ name: 'v1', schema: schemaOf(9, 9) }] }))
    await custom.must('POST', BASE, object('Ratchet', 'a', { spec }))
    await custom.redefine('ratchets.ex.io', (next) => {
      next.versions[0].schema = schemaOf(2, 2, ['x'])
    })
    // It is enforced some moments later.
    await custom.eventually(
      () => custom.ask('POST', `${BASE}?dryRun=All`, object('Ratchet', 'b', { spec: { s: 'long' } })),
      ({ status }) => status === 422,
    )
  })

  it('may change in other fields, with a warning about rules that it breaks', async () => {
    const answer = await patch({ free: 'x' })
    assert.equal(answer.status, 200, answer.text)
    assert.equal(
      answer.headers.get('warning'),
      '299 - "spec.m[0].v: Invalid value: \\"long\\": failed rule: self.size() <= 2"',
    )
  })

  it('may get items beside unchanged invalid ones, in keyed lists', async () => {
    const answer = await patch({ m: [{ k: 'b', v: 'x' }, ...spec.m] })
    assert.equal(answer.status, 200, answer.text)
    assert.match(await refusal({ l: ['long', 'x'] }), /spec\.l\[0\]: Too long: may not be more than 2 bytes/)
  })

  it('is validated in fields that change', async () => {
    assert.match(await refusal({ s: 'longer' }), /spec\.s: Too long: may not be more than 2 bytes/)
    assert.equal(
      await refusal({ m: [{ k: 'a', v: 'longer' }] }),
      'Ratchet.ex.io "a" is invalid: spec.m[0].v: Invalid value: "longer": failed rule: self.size() <= 2',
    )
  })

  it('cannot be created again', async () => {
    const made = await custom.refused('POST', BASE, object('Ratchet', 'c', { spec }))
    assert.match(made, /^422 .*spec\.req\.x: Required value.*some validation rules were not checked/)
  })
})
