import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { CompiledExpression } from '../expressions/compile.ts'
import { compileSelector, type Device, matches, MAX_SELECTOR_COST } from './selector.ts'

const GPU: Device = {
  driver: 'gpu.example.com',
  attributes: {
    model: { string: 'a100' },
    'other.example.com/index': { int: 3 },
    'other.example.com/healthy': { bool: true },
    version: { version: '1.2.3' },
  },
  capacity: { memory: { value: '80Gi' } },
}

function compiled(source: string): CompiledExpression {
  const selector = compileSelector(source)
  return selector.fault === undefined ? selector : assert.fail(`${source}: ${selector.fault.detail}`)
}

describe('CEL selector of devices', () => {
  const table: readonly (readonly [source: string, matches: boolean])[] = [
    ["device.driver == 'gpu.example.com'", true],
    ["device.attributes['gpu.example.com'].model == 'a100'", true],
    ["device.attributes['other.example.com'].index > 5", false],
    ["device.attributes['other.example.com'].healthy", true],
    ["device.attributes['gpu.example.com'].version.compareTo(semver('1.10.0')) < 0", true],
    ["device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) >= 0", true],
    ["has(device.attributes['none.example.com'].model)", false],
    ["'model' in device.attributes['gpu.example.com']", true],
    [
      "cel.bind(own, device.attributes['gpu.example.com'], own.model.startsWith('a') && own.version.major() == 1)",
      true,
    ],
    ['device.allowMultipleAllocations', false],
  ]
  for (const [source, expected] of table) {
    it(`${expected ? 'matches' : 'does not match'} a sample device: ${source}`, () =>
      assert.equal(matches(compiled(source), GPU), expected))
  }

  it('fails for missing attributes and for results that are no boolean', () => {
    const failing = (source: string, device: Device = GPU): string => {
      try {
        return String(matches(compiled(source), device))
      } catch (error) {
        return (error as Error).message
      }
    }
    assert.equal(failing("device.attributes['none.example.com'].model == 'x'"), 'no such key: model')
    assert.match(
      failing("device.attributes['gpu.example.com'].model"),
      /^CEL result of type string could not be converted/,
    )
    assert.match(
      failing('true', { driver: 'd', attributes: { v: { version: 'one' } } }),
      /^attribute v: parse semantic version: /,
    )
    assert.equal(failing('true', { driver: 'd', attributes: { v: {} } }), 'attribute v: unsupported attribute value')
  })

  it('is rejected if it does not compile or cannot yield a boolean', () => {
    const detail = (source: string, shares = true): string | undefined => compileSelector(source, shares).fault?.detail
    assert.equal(detail('device.driver'), 'must evaluate to bool or the unknown type, not string')
    assert.match(detail('device.zork == 1') ?? '', /undefined field 'zork'/)
    assert.match(detail('device.allowMultipleAllocations', false) ?? '', /undefined field 'allowMultipleAllocations'/)
    assert.match(detail('cel.bind(1, 2, true)') ?? '', /cel.bind\(\) variable names must be simple identifiers/)
  })

  it('has a cost estimate that follows the maximum size of devices', () => {
    assert.ok(compiled("device.attributes['d'].model.contains('x')").maxCost() < BigInt(MAX_SELECTOR_COST))
    const nested =
      'device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, a + b + c + d != ""))))'
    assert.ok(compiled(nested).maxCost() > BigInt(MAX_SELECTOR_COST))
  })
})
