import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { YamlError } from './error.ts'
import { YamlPlaces } from './places.ts'
import { parseYaml } from './yaml.ts'

function placesOf(text: string): { value: Record<string, unknown>; places: YamlPlaces } {
  const places = new YamlPlaces()
  return { value: parseYaml(text, { places }) as Record<string, unknown>, places }
}

describe('positions in YAML', () => {
  const text = 'a: 1.50\nlist:\n- x\n- {key: yes}\n'

  it('are the lines of keys and values', () => {
    const { value, places } = placesOf(text)
    const member = places.member(value, 'a')
    assert.deepEqual(places.spot(member?.value ?? -1), { line: 1, column: 4 })
    assert.equal(member?.written, '1.50')
    const list = value['list'] as { key: boolean }[]
    assert.deepEqual(places.spot(places.member(list, 1)?.value ?? -1), { line: 4, column: 3 })
    const inner = places.member(list[1] as object, 'key')
    assert.deepEqual(places.spot(inner?.key ?? -1), { line: 4, column: 4 })
    assert.equal(inner?.written, 'yes')
    assert.equal(places.member(value, 'b'), undefined)
  })

  it('distinguish repeated keys from keys that override merged ones', () => {
    const { places } = placesOf('base: &b {x: 1}\nc: {<<: *b, x: 2}\nd: 1\nd: 2\n')
    assert.deepEqual(
      places.repeats.map(({ key, at }) => [key, places.spot(at)]),
      [['d', { line: 4, column: 1 }]],
    )
  })

  it('are available for JSON, too', () => {
    assert.throws(
      () => parseYaml('a: 1\nb: [\n'),
      (error) => error instanceof YamlError && error.at?.line === 3,
    )
  })
})
