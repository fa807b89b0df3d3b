import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { ResourceClaim } from '#apis/resource/v1.ts'

import { changed, type RuleTrial, tryRules } from '../rules.fixture.ts'
import { resourceClaim } from './resourceclaim.ts'

const { create, update, cells, read } = tryRules(resourceClaim)

const body = {
  metadata: { name: 'x', namespace: 'n' },
  spec: {
    devices: {
      requests: [
        {
          name: 'r',
          exactly: {
            deviceClassName: 'c',
            selectors: [{ cel: { expression: 'true' } }],
            allocationMode: 'ExactCount',
            count: 2,
            tolerations: [{ key: 'k', operator: 'Equal', value: 'v', effect: 'NoSchedule' }, { operator: 'Exists' }],
            capacity: { requests: { a: '1' } },
          },
        },
        {
          name: 's',
          firstAvailable: [
            { name: 'f', deviceClassName: 'c', allocationMode: 'All' },
            { name: 'g', deviceClassName: 'c' },
          ],
        },
      ],
      constraints: [{ requests: ['r', 's/f'], matchAttribute: 'd.io/x' }, { distinctAttribute: 'd.io/y' }],
      config: [{ requests: ['s'], opaque: { driver: 'd.io', parameters: { a: 1 } } }],
    },
  },
  status: {
    reservedFor: [{ resource: 'pods', name: 'p', uid: 'u' }],
    allocation: {
      devices: {
        results: [
          {
            request: 'r',
            driver: 'd.io',
            pool: 'p/q',
            device: 'dev',
            bindingConditions: ['a'],
            bindingFailureConditions: ['b'],
            shareID: '12345678-1234-1234-1234-123456789abc',
            consumedCapacity: { a: '1' },
          },
        ],
        config: [{ source: 'FromClaim', requests: ['r'], opaque: { driver: 'd.io', parameters: { a: 1 } } }],
      },
      nodeSelector: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'k', operator: 'In', values: ['v'] }] }] },
    },
    devices: [
      {
        driver: 'd.io',
        pool: 'p/q',
        device: 'dev',
        shareID: '12345678-1234-1234-1234-123456789abc',
        conditions: [
          { type: 'Ready', status: 'True', reason: 'r', message: '', lastTransitionTime: '2024-01-01T00:00:00Z' },
        ],
        data: { a: 1 },
        networkData: { interfaceName: 'e', hardwareAddress: 'h', ips: ['10.0.0.1/24', 'fd00::1/64'] },
      },
    ],
  },
}

test('a ResourceClaim requests devices', async () => {
  const { errors, warnings } = await create(body)
  assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] })
})

test('a ResourceClaim rejects invalid requests, constraints and configuration', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'spec.devices.requests.0.name',
      'A',
      [
        "spec.devices.requests[0].name: Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        'spec.devices.constraints[0].requests[0]: Invalid value: "r": must be the name of a request in the claim or the name of a request and a subrequest separated by \'/\'',
      ],
    ],
    [
      'spec.devices.requests.1.name',
      'r',
      [
        'spec.devices.requests[1]: Duplicate value: "r"',
        'spec.devices.constraints[0].requests[1]: Invalid value: "s/f": must be the name of a request in the claim or the name of a request and a subrequest separated by \'/\'',
        'spec.devices.config[0].requests[0]: Invalid value: "s": must be the name of a request in the claim or the name of a request and a subrequest separated by \'/\'',
      ],
    ],
    [
      'spec.devices.requests.0.exactly',
      undefined,
      ['spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required'],
    ],
    [
      'spec.devices.requests.1.exactly',
      { deviceClassName: 'c' },
      [
        'spec.devices.requests[1]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set',
      ],
    ],
    [
      'spec.devices.requests.0.exactly.deviceClassName',
      '',
      ['spec.devices.requests[0].exactly.deviceClassName: Required value'],
    ],
    [
      'spec.devices.requests.0.exactly.allocationMode',
      'All',
      ["spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'"],
    ],
    [
      'spec.devices.requests.0.exactly.allocationMode',
      'Some',
      [
        'spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"',
      ],
    ],
    [
      'spec.devices.requests.0.exactly.count',
      -1,
      ['spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero'],
    ],
    [
      'spec.devices.requests.0.exactly.tolerations',
      [
        { operator: 'Exists', value: 'v' },
        { operator: 'Gt', effect: 'Leave' },
      ],
      [
        'spec.devices.requests[0].exactly.tolerations[0].value: Invalid value: "v": must be empty for operator `Exists`',
        'spec.devices.requests[0].exactly.tolerations[1].operator: Unsupported value: "Gt": supported values: "Equal", "Exists"',
        'spec.devices.requests[0].exactly.tolerations[1].effect: Unsupported value: "Leave": supported values: "NoExecute", "NoSchedule", "None"',
      ],
    ],
    [
      'spec.devices.requests.1.firstAvailable',
      Array.from({ length: 9 }, (_, at) => ({ name: `f${at}`, deviceClassName: 'c' })),
      [
        'spec.devices.requests[1].firstAvailable: Too many: 9: must have at most 8 items',
        'spec.devices.constraints[0].requests[1]: Invalid value: "s/f": must be the name of a request in the claim or the name of a request and a subrequest separated by \'/\'',
      ],
    ],
    [
      'spec.devices.constraints.0.requests',
      ['x', 's/x', 'a/b/c', 'r', 'r'],
      [
        'spec.devices.constraints[0].requests[0]: Invalid value: "x": must be the name of a request in the claim or the name of a request and a subrequest separated by \'/\'',
        'spec.devices.constraints[0].requests[1]: Invalid value: "s/x": must be the name of a request in the claim or the name of a request and a subrequest separated by \'/\'',
        'spec.devices.constraints[0].requests[2]: Invalid value: "a/b/c": must be the name of a request in the claim or the name of a request and a subrequest separated by \'/\'',
        'spec.devices.constraints[0].requests[4]: Duplicate value: "r"',
      ],
    ],
    [
      'spec.devices.constraints.0.matchAttribute',
      'x',
      [
        'spec.devices.constraints[0].matchAttribute: Invalid value: "x": a fully qualified name must be a domain and a name separated by a slash',
      ],
    ],
    [
      'spec.devices.constraints.1',
      {},
      [
        'spec.devices.constraints[1]: Required value: exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set',
      ],
    ],
    ['spec.devices.config.0', { requests: ['s'] }, ['spec.devices.config[0].opaque: Required value']],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a ResourceClaim rejects updates of spec', async () => {
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'spec.devices.requests.0.exactly.count',
      3,
      [
        'spec: Invalid value: {"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","selectors":[{"cel":{"expression":"true"}}],"allocationMode":"ExactCount","count":3,"tolerations":[{"key":"k","operator":"Equal","value":"v","effect":"NoSchedule"},{"operator":"Exists"}],"capacity":{"requests":{"a":"1"}}}},{"name":"s","firstAvailable":[{"name":"f","deviceClassName":"c","allocationMode":"All"},{"name":"g","deviceClassName":"c","allocationMode":"ExactCount","count":1}]}],"constraints":[{"requests":["r","s/f"],"matchAttribute":"d.io/x"},{"distinctAttribute":"d.io/y"}],"config":[{"requests":["s"],"opaque":{"driver":"d.io","parameters":{"a":1}}}]}}: field is immutable',
      ],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body)).errors, errors, path)
  }
})

test('a ResourceClaim accepts allocations, reservations and device reports', async () => {
  assert.deepEqual((await update(body, body, 'status')).errors, [])
  const table: readonly (readonly [path: string, value: unknown, errors: readonly string[]])[] = [
    [
      'status.reservedFor.0',
      { resource: '', name: '', uid: '' },
      [
        'status.reservedFor[0].resource: Required value',
        'status.reservedFor[0].name: Required value',
        'status.reservedFor[0].uid: Required value',
      ],
    ],
    [
      'status.allocation',
      undefined,
      ['status.reservedFor: Forbidden: may not be specified when `allocated` is not set'],
    ],
    [
      'status.allocation.nodeSelector',
      undefined,
      [
        'status.allocation: Invalid value: {"devices":{"results":[{"request":"r","driver":"d.io","pool":"p/q","device":"dev","bindingConditions":["a"],"bindingFailureConditions":["b"],"shareID":"12345678-1234-1234-1234-123456789abc","consumedCapacity":{"a":"1"}}],"config":[{"source":"FromClaim","requests":["r"],"opaque":{"driver":"d.io","parameters":{"a":1}}}]}}: field is immutable',
      ],
    ],
    [
      'status.devices.0.networkData',
      { ips: ['10.0.0.1', '10.0.0.01/24', '10.0.0.1/24', '10.0.0.1/24'], interfaceName: 'a'.repeat(257) },
      [
        'status.devices[0].networkData.interfaceName: Too long: may not be more than 256 bytes',
        'status.devices[0].networkData.ips[0]: Invalid value: "10.0.0.1": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)',
        'status.devices[0].networkData.ips[1]: Invalid value: "10.0.0.01/24": must be in canonical form ("10.0.0.1/24")',
        'status.devices[0].networkData.ips[3]: Duplicate value: "10.0.0.1/24"',
      ],
    ],
    [
      'status.devices.0.shareID',
      'x',
      [
        'status.devices[0].shareID: Invalid value: "x": error validating uid: invalid UUID length: 1',
        'status.devices[0]: Invalid value: "d.io/p/q/dev/x": must be an allocated device in the claim',
      ],
    ],
    [
      'status.devices.0.data',
      [1],
      ['status.devices[0].data: Invalid value: "<value omitted>": must be a valid JSON object'],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await update(changed(body, path, value), body, 'status')).errors, errors, path)
  }
})

test('a ResourceClaim requests one device by default', () => {
  const { spec } = read({
    metadata: { name: 'x', namespace: 'n' },
    spec: { devices: { requests: [{ name: 'r', exactly: { deviceClassName: 'c', tolerations: [{ key: 'k' }] } }] } },
  })
  assert.deepEqual(
    { spec },
    {
      spec: {
        devices: {
          requests: [
            {
              name: 'r',
              exactly: {
                deviceClassName: 'c',
                allocationMode: 'ExactCount',
                count: 1,
                tolerations: [{ key: 'k', operator: 'Equal' }],
              },
            },
          ],
        },
      },
    },
  )
})

test('a ResourceClaim prints its state', () => {
  assert.deepEqual(
    resourceClaim.columns?.map(({ name }) => name),
    ['Name', 'State', 'Age'],
  )
  assert.deepEqual(cells(body), ['x', 'allocated,reserved', '<unknown>'])
  assert.equal(resourceClaim.storagePrefix, 'resourceclaims')
  assert.equal(resourceClaim.deleteAnswersObject, true)
})

test('a ResourceClaim allows admin access only in labelled namespaces', async () => {
  const asking = changed(body, 'spec.devices.requests.0.exactly.adminAccess', true)
  const field = 'spec.devices.requests[0].adminAccess'
  const inNamespace = (labels: Record<string, string>): RuleTrial<ResourceClaim> =>
    tryRules(resourceClaim, {
      context: {
        objects: {
          get: async <T>() => ({ metadata: { name: 'n', labels } }) as T,
          list: async () => [],
        },
      },
    })
  assert.deepEqual((await inNamespace({}).create(asking)).errors, [
    `${field}: Forbidden: admin access to devices requires the \`resource.kubernetes.io/admin-access: true\` label on the containing namespace`,
  ])
  assert.deepEqual((await inNamespace({ 'resource.kubernetes.io/admin-access': 'true' }).create(asking)).errors, [])
  const { errors } = await inNamespace({}).create(
    changed(asking, 'spec.devices.requests.0.exactly.deviceClassName', ''),
  )
  assert.deepEqual(
    errors.map((text) => text.split(': ', 2).join(': ')),
    [`${field}: Forbidden`, 'spec.devices.requests[0].exactly.deviceClassName: Required value'],
  )
})

test('a ResourceClaim drops fields of disabled gates, unless they were set before', async () => {
  const off = { off: ['DRAConsumableCapacity', 'DRADeviceTaints', 'DRAPrioritizedList'] }
  const { object } = await tryRules(resourceClaim, off).create(body)
  assert.equal(object.spec.devices.requests?.[1]?.firstAvailable, undefined)
  assert.equal(object.spec.devices.requests?.[0]?.exactly?.tolerations, undefined)
  assert.equal(object.spec.devices.constraints?.[1]?.distinctAttribute, undefined)
  assert.deepEqual(
    (await tryRules(resourceClaim, off).update(body, body)).object.spec,
    (await create(body)).object.spec,
  )
})

test('a ResourceClaim sets defaults of v1beta1', () => {
  const old = resourceClaim.otherVersions?.find(({ kind }) => kind.version === 'v1beta1')
  const requests = [
    { name: 'a', deviceClassName: 'c', tolerations: [{}] },
    { name: 'b', deviceClassName: '', firstAvailable: [{ name: 'f', deviceClassName: 'c' }] },
  ]
  const object = { metadata: {}, spec: { devices: { requests } } }
  old?.applyDefaults?.(object, undefined as never)
  assert.deepEqual(requests, [
    { name: 'a', deviceClassName: 'c', allocationMode: 'ExactCount', count: 1, tolerations: [{ operator: 'Equal' }] },
    {
      name: 'b',
      deviceClassName: '',
      firstAvailable: [{ name: 'f', deviceClassName: 'c', allocationMode: 'ExactCount', count: 1 }],
    },
  ])
})
