import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { resourceSlice } from './resourceslice.ts'

const { create, update, cells } = tryRules(resourceSlice, {
  off: ['DRANodeAllocatableResources', 'DRAListTypeAttributes'],
})

const body = {
  metadata: { name: 'x' },
  spec: {
    driver: 'D.io',
    pool: { name: 'p/q', generation: 1, resourceSliceCount: 2 },
    nodeName: 'n',
    devices: [
      {
        name: 'd',
        attributes: { a: { int: 1 }, 'd.io/b': { string: 's' }, c: { version: '1.2.3-a+b' }, d: { bool: true } },
        capacity: {
          m: { value: '4', requestPolicy: { default: '1', validValues: ['1', '2'] } },
          n: { value: '8', requestPolicy: { default: '2', validRange: { min: '2', max: '6', step: '2' } } },
        },
        allowMultipleAllocations: true,
        taints: [{ key: 'k', value: 'v', effect: 'NoExecute', timeAdded: '2024-01-01T00:00:00Z' }],
        consumesCounters: [{ counterSet: 'c', counters: { x: { value: '1' } } }],
        bindsToNode: true,
        bindingConditions: ['a'],
        bindingFailureConditions: ['b'],
      },
      { name: 'e' },
    ],
  },
}

test('a ResourceSlice lists devices of a pool', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual(
    { errors, warnings },
    { errors: [], warnings: ['spec.driver: driver names should be lowercase; "D.io" contains uppercase characters'] },
  )
})

test('a ResourceSlice rejects invalid devices and node selections', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['spec.driver', '', ['spec.driver: Required value']],
    [
      'spec.pool',
      { name: 'A//', generation: -1, resourceSliceCount: 0 },
      [
        "spec.pool.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        "spec.pool.name: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        "spec.pool.name: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        'spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero',
        'spec.pool.generation: Invalid value: -1: must be greater than or equal to zero',
      ],
    ],
    [
      'spec.nodeName',
      '',
      [
        'spec.nodeName: Invalid value: "": must be either unset or set to a non-empty string',
        'spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required',
      ],
    ],
    [
      'spec.nodeName',
      undefined,
      [
        'spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required',
      ],
    ],
    [
      'spec.allNodes',
      true,
      [
        'spec: Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set',
      ],
    ],
    ['spec.allNodes', false, ['spec.allNodes: Invalid value: false: must be either unset or set to true']],
    [
      'spec.sharedCounters',
      [{ name: 'c', counters: {} }],
      [
        'spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed',
        'spec.sharedCounters[0].counters: Required value',
      ],
    ],
    [
      'spec.devices.0.name',
      'A',
      [
        "spec.devices[0].name: Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      ],
    ],
    ['spec.devices.1.name', 'd', ['spec.devices[1]: Duplicate value: "d"']],
    [
      'spec.devices.0.attributes',
      {
        'a-b': { int: 1 },
        '/x': { string: 'a'.repeat(65) },
        'A_/x': { version: '1.2' },
        y: {},
        z: { int: 1, bool: true },
      },
      [
        'spec.devices[0].attributes: Invalid value: "": the domain must not be empty',
        'spec.devices[0].attributes[/x].string: Too long: may not be more than 64 bytes',
        "spec.devices[0].attributes: Invalid value: \"A_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        'spec.devices[0].attributes[A_/x].version: Invalid value: "1.2": must be a string compatible with semver.org spec 2.0.0',
        "spec.devices[0].attributes: Invalid value: \"a-b\": a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')",
        'spec.devices[0].attributes[y]: Invalid value: "": exactly one value must be specified',
        'spec.devices[0].attributes[z]: Invalid value: {"int":1,"bool":true}: exactly one value must be specified',
      ],
    ],
    [
      'spec.devices.0.capacity.m.requestPolicy',
      { default: '3', validValues: ['2', '1', '9'] },
      [
        'spec.devices[0].capacity[m].requestPolicy.validValues[1]: Invalid value: "1": values must be sorted in ascending order',
        'spec.devices[0].capacity[m].requestPolicy.validValues[2]: Invalid value: "9": option is larger than capacity value: 4',
        'spec.devices[0].capacity[m].requestPolicy.validValues: Invalid value: "3": default value is not valid according to the requestPolicy',
      ],
    ],
    [
      'spec.devices.0.capacity.m.requestPolicy',
      { default: '1', validValues: Array.from({ length: 11 }, () => '1') },
      [
        'spec.devices[0].capacity[m].requestPolicy.validValues: Too many: 11: must have at most 10 items',
        'spec.devices[0].capacity[m].requestPolicy.validValues: Invalid value: "1": default value is not valid according to the requestPolicy',
      ],
    ],
    [
      'spec.devices.0.capacity.m.requestPolicy',
      { validValues: ['1'] },
      ['spec.devices[0].capacity[m].requestPolicy.default: Required value: required when validValues is defined'],
    ],
    [
      'spec.devices.0.capacity.m.requestPolicy',
      { default: '1', validValues: ['1'], validRange: { min: '1' } },
      [
        'spec.devices[0].capacity[m].requestPolicy: Forbidden: exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time',
      ],
    ],
    [
      'spec.devices.0.capacity.n.requestPolicy.validRange',
      { min: '3', max: '9', step: '7' },
      [
        'spec.devices[0].capacity[n].requestPolicy.validRange.min: Invalid value: "2": default is less than min: 3',
        'spec.devices[0].capacity[n].requestPolicy.validRange.max: Invalid value: "9": max is larger than capacity value: 8',
        'spec.devices[0].capacity[n].requestPolicy.validRange.step: Invalid value: "7": one step 10 is larger than capacity value: 8',
        'spec.devices[0].capacity[n].requestPolicy.validRange.step: Invalid value: "2": value is not a multiple of a given step (7) from (3)',
        'spec.devices[0].capacity[n].requestPolicy.validRange.step: Invalid value: "9": value is not a multiple of a given step (7) from (3)',
      ],
    ],
    [
      'spec.devices.0.capacity.n.requestPolicy.validRange',
      {},
      ['spec.devices[0].capacity[n].requestPolicy.validRange.min: Required value: required when validRange is defined'],
    ],
    [
      'spec.devices.0.taints.0',
      { key: '', effect: 'Leave' },
      [
        'spec.devices[0].taints[0].key: Invalid value: "": name part must be non-empty',
        "spec.devices[0].taints[0].key: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        'spec.devices[0].taints[0].effect: Unsupported value: "Leave": supported values: "NoExecute", "NoSchedule", "None"',
      ],
    ],
    [
      'spec.devices.0.consumesCounters.0',
      { counterSet: '', counters: {} },
      [
        'spec.devices[0].consumesCounters[0].counterSet: Required value',
        'spec.devices[0].consumesCounters[0].counters: Required value',
      ],
    ],
    [
      'spec.devices.0.bindingConditions',
      undefined,
      [
        'spec.devices[0].bindingConditions: Invalid value: null: bindingConditions are required to use bindingFailureConditions',
      ],
    ],
    [
      'spec.devices.0.bindingConditions',
      ['a', 'a', 'b'],
      [
        'spec.devices[0].bindingConditions[1]: Duplicate value: "a"',
        'spec.devices[0].bindingFailureConditions[0]: Invalid value: "b": bindingFailureConditions must not overlap with bindingConditions',
      ],
    ],
    [
      'spec.devices.1.nodeName',
      'n',
      [
        'spec.devices[1]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec',
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a ResourceSlice rejects updates of driver, pool name and node name', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    ['spec.driver', 'e.io', ['spec.driver: Invalid value: "e.io": field is immutable']],
    ['spec.pool.name', 'other', ['spec.pool.name: Invalid value: "other": field is immutable']],
    ['spec.nodeName', 'm', ['spec.nodeName: Invalid value: "m": field is immutable']],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body)).errors, errors, path)
  }
})

test('a ResourceSlice prints node, driver and pool', () => {
  assert.deepEqual(
    resourceSlice.columns?.map(({ name }) => name),
    ['Name', 'Node', 'Driver', 'Pool', 'Age'],
  )
  assert.deepEqual(cells(body), ['x', 'n', 'D.io', 'p/q', '<unknown>'])
  assert.equal(resourceSlice.storagePrefix, 'resourceslices')
  assert.equal(resourceSlice.deleteAnswersObject, true)
})
