import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { compileJsonPath, relaxedPath } from './jsonpath.ts'

const DATA = {
  kind: 'Pod',
  metadata: { name: 'web', labels: { 'k.8s': 'yes' } },
  people: [
    { name: 'ann', age: 33, tags: ['x', 'y'] },
    { name: 'bob', age: 20, tags: [] },
  ],
  nothing: null,
}

describe('kubectl JSONPath template', () => {
  const rows: [template: string, text: string][] = [
    ['{.kind} is {.metadata.name}', 'Pod is web'],
    ['{.people[*].name}', 'ann bob'],
    ['{.people[-1].age} {.people[0:1].name} {.people[::2].name}', '20 ann ann'],
    ['{.people[0,1].name}', 'ann bob'],
    ['{.people[?(@.age>30)].name}', 'ann'],
    ["{.people[?(@.name=='bob')].age}", '20'],
    ['{..name}', 'web ann bob'],
    [String.raw`{.metadata.labels.k\.8s}`, 'yes'],
    ["{['kind']}", 'Pod'],
    ['{range .people[*]}{.name}{"\\n"}{end}', 'ann\nbob\n'],
    ['{range .people[*]}{range .tags[*]}{@}{end}{.name};{end}!', 'xyann;bob;!'],
    ['{range .nope[*]}{.name}{end}x', 'x'],
    ['{.people[0].tags}', '["x","y"]'],
    ['{.nope}{.nothing}', 'null'],
    ['{1} {-2.50} {true} {"a\\tb"}', '1 -2.5 true a\tb'],
  ]
  for (const [template, text] of rows) {
    it(`evaluates ${template}`, () => assert.equal(compileJsonPath(template).show(DATA), text))
  }

  it('prints list results as JSON', () => {
    const path = compileJsonPath('{.people[*].name}', { asJson: true })
    assert.equal(path.show(DATA), '[\n    "ann",\n    "bob"\n]\n')
  })

  const refused: [template: string, message: string][] = [
    ['{.kind', 'unclosed action'],
    ['{.people[', 'unterminated array'],
    ['{.people[a]}', 'invalid array index a'],
    ['{.people[?(@.age>1)}', 'unclosed array expect ]'],
    ['{"x}', 'unterminated quoted string'],
    ['{|}', "unrecognized character in action: U+007C '|'"],
    ['{1.2.3}', 'cannot parse number 1.2.3'],
    ['{....name}', 'invalid multiple recursive descent'],
  ]
  for (const [template, message] of refused) {
    it(`is refused: ${template}`, () => assert.throws(() => compileJsonPath(template), { message }))
  }

  const failing: [template: string, message: string][] = [
    ['{.people[9]}', 'array index out of bounds: index 9, length 2'],
    ['{.kind[0]}', 'string is not array or slice'],
    ['{items}', 'unrecognized identifier items'],
    ['{end}', 'not in range, nothing to end'],
    ['{.people[?(@.age==1.5)].name}', 'incompatible types for comparison'],
  ]
  for (const [template, message] of failing) {
    it(`reports why ${template} fails`, () => assert.throws(() => compileJsonPath(template).show(DATA), { message }))
  }

  it('fails for a missing key if configured', () => {
    const path = compileJsonPath('{.nope}', { allowMissingKeys: false })
    assert.throws(() => path.show(DATA), { message: 'nope is not found' })
  })

  it('may be a path without braces and leading dot', () => {
    for (const path of ['metadata.name', '.metadata.name', '{metadata.name}', '{.metadata.name}']) {
      assert.equal(relaxedPath(path), '{.metadata.name}')
    }
    assert.throws(() => relaxedPath('{.a}{.b}'), /unexpected path string/)
  })
})
