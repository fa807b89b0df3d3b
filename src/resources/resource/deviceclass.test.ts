import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { deviceClass } from './deviceclass.ts'

const { create, cells } = tryRules(deviceClass)

const body = {
  metadata: { name: 'x' },
  spec: {
    selectors: [{ cel: { expression: 'true' } }],
    config: [{ opaque: { driver: 'd.io', parameters: { a: 1 } } }],
    extendedResourceName: 'acme.io/gpu',
  },
}

test('a DeviceClass selects devices and configures them', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('a DeviceClass rejects invalid selectors and configuration', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['spec.selectors.0', {}, ['spec.selectors[0].cel: Required value']],
    [
      'spec.selectors.0.cel.expression',
      'a'.repeat(10241),
      ['spec.selectors[0].cel.expression: Too long: may not be more than 10240 bytes'],
    ],
    [
      'spec.selectors.0.cel.expression',
      'device.driver',
      [
        'spec.selectors[0].cel.expression: Invalid value: "device.driver": must evaluate to bool or the unknown type, not string',
      ],
    ],
    [
      'spec.selectors.0.cel.expression',
      'device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, a + b + c + d != ""))))',
      ['spec.selectors[0].cel.expression: Forbidden: too complex, exceeds cost limit'],
    ],
    [
      'spec.selectors',
      Array.from({ length: 33 }, () => ({ cel: { expression: 'true' } })),
      ['spec.selectors: Too many: 33: must have at most 32 items'],
    ],
    ['spec.config.0', {}, ['spec.config[0].opaque: Required value']],
    [
      'spec.config.0.opaque',
      { driver: '', parameters: [] },
      [
        'spec.config[0].opaque.driver: Required value',
        'spec.config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON object',
      ],
    ],
    ['spec.config.0.opaque.parameters', undefined, ['spec.config[0].opaque.parameters: Required value']],
    [
      'spec.extendedResourceName',
      'cpu',
      ['spec.extendedResourceName: Invalid value: "cpu": must be a valid extended resource name'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a DeviceClass validates the generated name instead of its prefix', async () => {
  const [complaint] = (await create(changed(body, 'metadata.name', 'A_b'))).errors
  assert.match(complaint ?? '', /^metadata\.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain must/)
  assert.deepEqual((await create(changed(body, 'metadata.generateName', 'A_'))).errors, [])
  assert.deepEqual((await create(changed(body, 'metadata.generateName', 'a/'))).errors, [
    `metadata.generateName: Invalid value: "a/": may not contain '/'`,
  ])
})

test('a DeviceClass prints its name', () => {
  assert.deepEqual(
    deviceClass.columns?.map(({ name }) => name),
    ['Name', 'Age'],
  )
  assert.deepEqual(cells(body), ['x', '<unknown>'])
  assert.equal(deviceClass.storagePrefix, 'deviceclasses')
  assert.equal(deviceClass.deleteAnswersObject, true)
})
