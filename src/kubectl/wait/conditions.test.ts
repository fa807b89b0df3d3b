import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { AnyObject } from '../session/rest.ts'
import { waitConditions } from './conditions.ts'

const ready: AnyObject = {
  metadata: { generation: 2 },
  status: { observedGeneration: 2, readyReplicas: 3, conditions: [{ type: 'Ready', status: 'True' }] },
}

function isMet(text: string, object: AnyObject): boolean {
  const [condition] = waitConditions([text])
  assert.ok(condition?.kind === 'state')
  return condition.isMet(object)
}

describe('condition of kubectl wait', () => {
  it('matches regardless of case', () => {
    assert.ok(isMet('condition=ready', ready))
    assert.ok(isMet('condition=Ready=TRUE', ready))
    assert.ok(!isMet('condition=Ready=False', ready))
    assert.ok(!isMet('condition=Other', ready))
  })

  it('does not match if it was observed at an older generation', () => {
    assert.ok(!isMet('condition=Ready', { ...ready, metadata: { generation: 3 } }))
  })

  it('may be a JSONPath', () => {
    assert.ok(isMet('jsonpath={.status.readyReplicas}', ready))
    assert.ok(isMet("jsonpath='{.status.readyReplicas}'=3".replaceAll("'", ''), ready))
    assert.ok(!isMet('jsonpath=.status.nothing', ready))
    assert.ok(isMet('jsonpath={.status.conditions[?(@.type=="Ready")].status}=True', ready))
    assert.throws(() => isMet('jsonpath={.status}=3', ready), /nested object or list which is not supported/)
  })

  for (const [text, problem] of [
    ['fly', /unrecognized condition: "fly"/],
    ['jsonpath={.a}=', /has to have a value after equal sign/],
    ['jsonpath={.a}=1=2', /jsonpath wait format must be/],
    ['jsonpath=', /jsonpath expression cannot be empty/],
  ] as const) {
    it(`is refused: ${text}`, () => assert.throws(() => waitConditions([text]), problem))
  }

  it('is refused if it is empty', () => assert.throws(() => waitConditions([]), /unrecognized condition: \[\]/))
})
