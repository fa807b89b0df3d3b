import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { keyElement, printPath, readElement, sortElements, valueElement } from './path-element.ts'

describe('path element of FieldsV1', () => {
  const FORMS: readonly [given: string, form: string | undefined][] = [
    ['f:spec', 'f:spec'],
    ['f:', 'f:'],
    ['f:a:b', 'f:a:b'],
    ['k:{"name":"web"}', 'k:{"name":"web"}'],
    ['k:{"protocol":"TCP","port":80}', 'k:{"port":80,"protocol":"TCP"}'],
    ['k:{ "port": 8.0e1 }', 'k:{"port":80}'],
    ['k:{"name":"<a>"}', 'k:{"name":"\\u003ca\\u003e"}'],
    ['k:{"10":1,"2":1}', 'k:{"10":1,"2":1}'],
    ['k:{}', 'k:{}'],
    ['v: "a"', 'v:"a"'],
    ['v:1.0', 'v:1'],
    ['v:9223372036854775807', 'v:9223372036854775807'],
    ['i:007', 'i:7'],
    ['x:later', undefined],
  ]
  for (const [given, form] of FORMS) {
    it(`is parsed from ${given} and written as ${String(form)}`, () => assert.equal(readElement(given), form))
  }

  for (const bad of ['', 'f', 'fspec', 'k:', 'k:[1]', 'k:{"a"', 'v:', 'v:{', 'i:x', 'i:']) {
    it(`is rejected: '${bad}'`, () => assert.throws(() => readElement(bad)))
  }

  it('has keys sorted by name, regardless of the schema', () => {
    const keys = [['protocol', 'TCP'] as const, ['__proto__', 1] as const, ['port', 80] as const]
    assert.equal(keyElement(keys), 'k:{"__proto__":1,"port":80,"protocol":"TCP"}')
  })

  it("contains values in Go's JSON form", () => {
    assert.equal(valueElement('a"&b'), 'v:"a\\"\\u0026b"')
    assert.equal(valueElement(1.5), 'v:1.5')
    assert.equal(valueElement(2n ** 63n - 1n), 'v:9223372036854775807')
    assert.equal(valueElement(true), 'v:true')
  })

  it("is printed in the form of upstream's error texts", () => {
    const path = ['f:spec', 'f:ports', 'k:{"port":80,"protocol":"TCP"}', 'f:args', 'i:3']
    assert.equal(printPath(path), '.spec.ports[port=80,protocol="TCP"].args[3]')
    assert.equal(printPath(['f:metadata', 'f:finalizers', 'v:"a\\u003cb"']), '.metadata.finalizers[="a<b"]')
    assert.equal(printPath(['v:1.5', 'v:true', 'k:{"a":null}', 'k:{"b":[1,"x"]}']), '[=1.5][=true][a=null][b=[1,"x"]]')
  })

  it('sorts by type: fields, keys, values, indexes', () => {
    const sorted = [
      'f:',
      'f:a',
      'f:b',
      'f:\uffff',
      'f:\u{10000}',
      'k:{"a":2}',
      'k:{"a":10}',
      'k:{"a":10,"b":1}',
      'k:{"a":"1"}',
      'k:{"b":0}',
      'v:2',
      'v:10',
      'v:"a"',
      'v:false',
      'v:true',
      'v:[1]',
      'v:{"a":1}',
      'v:null',
      'i:2',
      'i:10',
    ]
    assert.deepEqual(sortElements(sorted.toReversed()), sorted)
  })

  it('sorts strings by their value, regardless of their escapes', () => {
    const texts = ['', '#', '\\', 'a', 'a b', 'a!', 'a#', 'a-b', 'aé', 'b', 'é']
    const keyed = ['', '#', 'a', 'a!b', 'a-b', 'b'].map((uid) => keyElement([['uid', uid]]))
    assert.deepEqual(sortElements(keyed.toReversed()), keyed)
    const plainKeyed = ['1', '10', '2', 'a', 'a-b'].map((uid) => keyElement([['uid', uid]]))
    assert.deepEqual(sortElements(plainKeyed.toReversed()), plainKeyed)
    const plain = ['#', 'a', 'a#', 'a-b', 'a.b/c', 'b']
    for (const sorted of [texts, plain]) {
      const elements = sorted.map(valueElement)
      assert.deepEqual(sortElements(elements.toReversed()), elements)
    }
  })
})
