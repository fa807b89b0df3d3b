import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { contextWith, trialOf } from '../trial.suite.ts'
import { node } from './resource.ts'

const trial = trialOf(node)
const metadata = { name: 'n' }

describe('Node', () => {
  it('is stored under /registry/minions, with the status that the kubelet registers', () => {
    assert.deepEqual([node.storagePrefix, node.statusOnCreate], ['minions', 'kept'])
    const sent = {
      metadata,
      spec: { podCIDR: '10.1.0.0/24', configSource: { configMap: {} } },
      status: { capacity: { cpu: '1', memory: '1.0001' }, config: {} },
    }
    const { object, errors } = trial.create(sent)
    assert.deepEqual(errors, [])
    assert.deepEqual(object.spec, { podCIDR: '10.1.0.0/24', podCIDRs: ['10.1.0.0/24'] })
    assert.deepEqual([object.status.allocatable, object.status.config], [{ cpu: '1', memory: '1001m' }, undefined])
  })

  it('gets podCIDRs from podCIDR if an old client sets only that', () => {
    const spec = { podCIDR: '10.2.0.0/24', podCIDRs: ['10.1.0.0/24', 'fd00::/64'] }
    assert.deepEqual(trial.load({ metadata, spec }).spec.podCIDRs, ['10.2.0.0/24'])
    assert.equal(trial.load({ metadata, spec: { podCIDRs: ['10.1.0.0/24'] } }).spec.podCIDR, '10.1.0.0/24')
  })

  const feature =
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
  const refusals: [string, Record<string, unknown>, string[]][] = [
    [
      'invalid or repeated taints',
      {
        spec: {
          taints: [
            { key: 'a', effect: '' },
            { key: 'a', effect: 'x' },
            { key: 'a', effect: 'x' },
          ],
        },
      },
      [
        'metadata.taints[0].effect: Required value',
        'metadata.taints[1].effect: Unsupported value: "x": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
        'metadata.taints[2].effect: Unsupported value: "x": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
        'metadata.taints[2]: Duplicate value: {"key":"a","effect":"x"}: taints must be unique by key and effect pair',
      ],
    ],
    [
      'two pod CIDRs of one family',
      { spec: { podCIDRs: ['10.1.0.0/24', '10.2.0.0/24'] } },
      [
        'spec.podCIDRs: Invalid value: ["10.1.0.0/24","10.2.0.0/24"]: may specify no more than one CIDR for each IP family',
      ],
    ],
    [
      'a pod CIDR with host bits',
      { spec: { podCIDRs: ['10.1.0.1/24'] } },
      ['spec.podCIDRs[0]: Invalid value: "10.1.0.1/24": must not have bits set beyond the prefix length'],
    ],
    [
      'a fractional number of pods',
      { status: { capacity: { pods: '500m' } } },
      [
        'status.capacity.pods: Invalid value: "500m": must be an integer',
        'status.allocatable.pods: Invalid value: "500m": must be an integer',
      ],
    ],
    [
      'a negative swap capacity',
      { status: { nodeInfo: { swap: { capacity: 0 } } } },
      ['metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero'],
    ],
    [
      'unsorted declared features',
      { status: { declaredFeatures: ['B', 'A', 'a'] } },
      [
        'status.declaredFeatures[1]: Invalid value: "A": list must be sorted alphabetically',
        `status.declaredFeatures[2]: Invalid value: "a": invalid feature name "a": ${feature}`,
      ],
    ],
  ]
  for (const [what, fields, errors] of refusals) {
    it(`rejects ${what}`, () => assert.deepEqual(trial.create({ metadata, ...fields }).errors, errors))
  }

  it('parses the deprecated scheduler.alpha.kubernetes.io annotations as leniently as upstream', () => {
    const errorsOf = (name: string, text: string): string[] =>
      trial.create({ metadata: { ...metadata, annotations: { [`scheduler.alpha.kubernetes.io/${name}`]: text } } })
        .errors
    const at = 'metadata.annotations.scheduler.alpha.kubernetes.io'
    assert.deepEqual(errorsOf('taints', '[{"key":"a"}]'), [`${at}/taints[0].effect: Required value`])
    assert.deepEqual(errorsOf('taints', '[{"key":5}]'), [
      'metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/taints": must be a list of taints',
    ])
    assert.deepEqual(errorsOf('taints', '['), [
      'metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/taints": unexpected end of JSON input',
    ])
    assert.deepEqual(errorsOf('preferAvoidPods', '{"preferAvoidPods":[{}, {"podSignature":{"podController":{}}}]}'), [
      `${at}/preferAvoidPods[0].PodSignature: Required value`,
      `${at}/preferAvoidPods[1].PodSignature.PodController.Controller: Invalid value: false: must point to a controller`,
    ])
  })

  it('rejects changes of providerID and pod CIDRs once they are set', () => {
    const old = { metadata, spec: { podCIDRs: ['10.1.0.0/24'], providerID: 'p' } }
    assert.deepEqual(
      trial.update({ metadata, spec: { podCIDRs: ['10.2.0.0/24'], providerID: 'q', externalID: 'x' } }, old).errors,
      [
        'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
        'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
        'spec.externalID: Forbidden: may not be updated',
      ],
    )
    assert.deepEqual(trial.update(old, { metadata }).errors, [])
  })

  it('takes label changes from a status update, but no spec changes', () => {
    const next = {
      metadata: { ...metadata, labels: { a: 'b' } },
      spec: { unschedulable: true },
      status: { config: {} },
    }
    const { object, errors } = trial.update(next, { metadata }, 'status')
    assert.deepEqual(
      [errors, object.metadata.labels, object.spec, object.status.config],
      [[], { a: 'b' }, {}, undefined],
    )
    const addresses = [
      { type: 'Hostname', address: 'h' },
      { type: 'Hostname', address: 'h' },
    ]
    assert.deepEqual(trial.update({ metadata, status: { addresses } }, { metadata }, 'status').errors, [
      'status.addresses[1]: Duplicate value: {"type":"Hostname","address":"h"}',
    ])
  })

  it('keeps and validates configSource only if the old object has it', () => {
    const source = { configMap: { namespace: 'ns', name: 'c', kubeletConfigKey: 'k', uid: 'u' } }
    const spec = { configSource: source }
    const { errors, warnings } = trial.update({ metadata, spec }, { metadata, spec })
    assert.deepEqual(errors, ['spec.configSource.configMap.uid: Forbidden: uid must not be set in spec'])
    assert.deepEqual(warnings, ['spec.configSource: the feature is removed'])
    const config = { assigned: source, active: {} }
    assert.deepEqual(
      trial.update({ metadata, status: { config } }, { metadata, status: { config } }, 'status').errors,
      [
        'status.config.assigned.configMap.resourceVersion: Required value',
        'status.config.active: Invalid value: {}: exactly one reference subfield must be non-nil',
      ],
    )
  })

  it('loses declaredFeatures while the feature gate is off', () => {
    const off = contextWith({ isEnabled: (gate) => gate !== 'NodeDeclaredFeatures' })
    const { object } = trial.create({ metadata, status: { declaredFeatures: ['A'] } }, off)
    assert.equal(object.status.declaredFeatures, undefined)
  })

  it('prints status, roles, addresses and versions', () => {
    const nodeInfo = { kubeletVersion: 'v1', osImage: 'os', kernelVersion: 'k', architecture: 'arm64' }
    const row = trial.cells({
      metadata: {
        ...metadata,
        labels: { 'node-role.kubernetes.io/b': '', 'kubernetes.io/role': 'a', 'node-role.kubernetes.io/': '' },
      },
      spec: { unschedulable: true },
      status: {
        conditions: [{ type: 'Ready', status: 'False' }],
        nodeInfo,
        addresses: [{ type: 'InternalIP', address: '1.1.1.1' }],
      },
    })
    const wide = ['1.1.1.1', '<none>', 'os', 'k (arm64)', '<unknown>']
    assert.deepEqual(row, ['n', 'NotReady,SchedulingDisabled', 'a,b', '<unknown>', 'v1', ...wide])
    assert.deepEqual(trial.cells({ metadata }).slice(1, 3), ['Unknown', '<none>'])
    assert.equal(node.fieldSelectors?.['spec.unschedulable']?.(trial.load({ metadata })), 'false')
  })
})
