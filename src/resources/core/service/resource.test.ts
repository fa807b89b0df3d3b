import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Kind } from '#apis/kinds.ts'
import type { ObjectName, ObjectWriter } from '#apiserver/registry/resource.ts'

import { contextWith, type Sent, trialOf } from '../trial.suite.ts'
import type { ServiceAllocator } from './allocation.ts'
import { createServiceResource } from './resource.ts'

const allocator: ServiceAllocator = {
  primaryFamily: 'IPv4',
  allocate: async () => async () => {},
  release: async () => {},
}
const service = createServiceResource(allocator)
const trial = trialOf(service)
const metadata = { name: 's', namespace: 'ns' }
const addressed = {
  clusterIP: '10.0.0.1',
  clusterIPs: ['10.0.0.1'],
  ipFamilies: ['IPv4'],
  ipFamilyPolicy: 'SingleStack',
}
const of = (spec: Sent = {}, extra: object = {}): Sent => ({
  metadata: { ...metadata, ...extra },
  spec: { ...addressed, ports: [{ port: 80 }], ...spec },
})
const both = { clusterIPs: ['10.0.0.1', 'fd00::1'], ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy: 'RequireDualStack' }

describe('Service', () => {
  it('has default type, protocols, target ports and traffic policies', () => {
    const { spec } = trial.load({ metadata, spec: { ports: [{ port: 80 }], sessionAffinity: 'ClientIP' } })
    assert.deepEqual(spec.ports, [{ port: 80, protocol: 'TCP', targetPort: 80 }])
    assert.deepEqual(
      [spec.type, spec.internalTrafficPolicy, spec.externalTrafficPolicy],
      ['ClusterIP', 'Cluster', undefined],
    )
    assert.deepEqual(spec.sessionAffinityConfig, { clientIP: { timeoutSeconds: 10_800 } })
    const balanced = trial.load({
      metadata,
      spec: { type: 'LoadBalancer' },
      status: { loadBalancer: { ingress: [{ ip: '1.1.1.1' }] } },
    })
    assert.deepEqual(
      [balanced.spec.allocateLoadBalancerNodePorts, balanced.spec.externalTrafficPolicy],
      [true, 'Cluster'],
    )
    assert.equal(balanced.status.loadBalancer.ingress?.[0]?.ipMode, 'VIP')
    assert.equal(trial.load({ metadata, spec: { type: 'ExternalName' } }).spec.internalTrafficPolicy, undefined)
  })

  it('is stored under /registry/services/specs', () => assert.equal(service.storagePrefix, 'services/specs'))

  const duplicate = '{"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}'
  const onlyLb = "may only be used when `type` is 'LoadBalancer'"
  const refusals: [string, Sent, string[]][] = [
    ['a Service without ports', { ports: [] }, ['spec.ports: Required value']],
    [
      'unnamed or repeated ports',
      { ports: [{ port: 80 }, { name: 'b', port: 80 }] },
      ['spec.ports[0].name: Required value', `spec.ports[1]: Duplicate value: ${duplicate}`],
    ],
    [
      'invalid ports',
      { ports: [{ port: 0, targetPort: 70000, protocol: 'x', nodePort: 30000, appProtocol: '!' }] },
      [
        'spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive',
        'spec.ports[0].protocol: Unsupported value: "x": supported values: "SCTP", "TCP", "UDP"',
        'spec.ports[0].targetPort: Invalid value: 70000: must be between 1 and 65535, inclusive',
        "spec.ports[0].appProtocol: Invalid value: \"!\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
      ],
    ],
    [
      'a headless Service with node ports',
      { type: 'NodePort', clusterIP: 'None', clusterIPs: ['None'] },
      ['spec.clusterIPs[0]: Invalid value: "None": may not be set to \'None\' for NodePort services'],
    ],
    [
      'an ExternalName with cluster IPs',
      { type: 'ExternalName' },
      [
        'spec.clusterIPs: Forbidden: may not be set for ExternalName services',
        'spec.ipFamilies: Forbidden: may not be set for ExternalName services',
        'spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services',
        'spec.externalName: Required value',
      ],
    ],
    [
      'inconsistent cluster IPs',
      {
        clusterIP: '10.0.0.2',
        clusterIPs: ['10.0.0.1', '10.0.0.3'],
        ipFamilies: ['IPv6', 'IPv6'],
        ipFamilyPolicy: 'x',
      },
      [
        'spec.clusterIPs: Invalid value: ["10.0.0.1","10.0.0.3"]: first value must match `clusterIP`',
        'spec.ipFamilies[1]: Duplicate value: "IPv6"',
        'spec.ipFamilyPolicy: Unsupported value: "x": supported values: "PreferDualStack", "RequireDualStack", "SingleStack"',
        'spec.clusterIPs: Invalid value: ["10.0.0.1","10.0.0.3"]: may specify no more than one IP for each IP family',
        'spec.clusterIPs[0]: Invalid value: "10.0.0.1": expected an IPv6 value as indicated by `ipFamilies[0]`',
        'spec.clusterIPs[1]: Invalid value: "10.0.0.3": expected an IPv6 value as indicated by `ipFamilies[1]`',
      ],
    ],
    [
      'None among other cluster IPs',
      { clusterIP: 'None', clusterIPs: ['None', '10.0.0.1'] },
      ['spec.clusterIPs: Invalid value: ["None","10.0.0.1"]: \'None\' must be the first and only value'],
    ],
    [
      'an unknown session affinity',
      { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 86_401 } } },
      [
        'spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater than 0 and less than 86400',
      ],
    ],
    [
      'fields of load balancers with another type',
      { loadBalancerSourceRanges: ['10.0.0.0/8'], allocateLoadBalancerNodePorts: true, loadBalancerClass: 'x' },
      [
        `spec.LoadBalancerSourceRanges: Forbidden: ${onlyLb}`,
        `spec.allocateLoadBalancerNodePorts: Forbidden: ${onlyLb}`,
        `spec.loadBalancerClass: Forbidden: ${onlyLb}`,
      ],
    ],
    [
      'traffic policies that do not apply',
      {
        externalTrafficPolicy: 'Local',
        healthCheckNodePort: 30000,
        internalTrafficPolicy: 'x',
        trafficDistribution: 'y',
      },
      [
        'spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services',
        "spec.healthCheckNodePort: Invalid value: 30000: may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
        'spec.internalTrafficPolicy: Unsupported value: "x": supported values: "Cluster", "Local"',
        'spec.trafficDistribution: Unsupported value: "y": supported values: "PreferClose", "PreferSameZone", "PreferSameNode"',
      ],
    ],
    [
      'an unknown type',
      { type: 'x' },
      ['spec.type: Unsupported value: "x": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'],
    ],
    [
      'unreachable external IPs',
      { externalIPs: ['127.0.0.1'] },
      ['spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)'],
    ],
  ]
  for (const [what, spec, errors] of refusals) {
    it(`rejects ${what}`, () => assert.deepEqual(trial.create(of(spec)).errors, errors))
  }

  it('may have all fields', () => {
    const spec = {
      type: 'LoadBalancer',
      externalTrafficPolicy: 'Local',
      healthCheckNodePort: 30001,
      loadBalancerSourceRanges: [' 10.0.0.0/8 '],
    }
    assert.deepEqual(trial.create(of(spec)).errors, [])
    assert.deepEqual(trial.create({ metadata, spec: { type: 'ExternalName', externalName: 'x.example.' } }).errors, [])
    assert.deepEqual(trial.create({ metadata, spec: { clusterIP: 'None' } }).errors, [])
  })

  it('may have a name that begins with a digit only with the feature gate', () => {
    const strict = contextWith({ isEnabled: (gate) => gate !== 'RelaxedServiceNameValidation' })
    assert.deepEqual(trial.create(of({}, { name: '1a' })).errors, [])
    assert.match(
      trial.create(of({}, { name: '1a' }), strict).errors[0] ?? '',
      /^metadata.name: Invalid value: "1a": a DNS-1035 label/,
    )
  })

  it('gets source ranges from the annotation, and warns if both topology annotations are set', () => {
    const annotations = { 'service.beta.kubernetes.io/load-balancer-source-ranges': '10.0.0.0/8, x' }
    assert.deepEqual(trial.create(of({ type: 'LoadBalancer' }, { annotations })).errors, [
      'metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
    ])
    const topology = { 'service.kubernetes.io/topology-aware-hints': 'a', 'service.kubernetes.io/topology-mode': 'b' }
    const { errors, warnings } = trial.create(of({}, { annotations: topology }))
    assert.deepEqual(errors, [
      'metadata.annotations[service.kubernetes.io/topology-mode]: Invalid value: "b": must match annotations[service.kubernetes.io/topology-aware-hints] when both are specified',
    ])
    assert.deepEqual(warnings, [
      'annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead',
    ])
  })

  it('keeps allocated values if the client omits them', () => {
    const old = of({
      type: 'NodePort',
      ports: [
        { name: 'a', port: 80, nodePort: 30001 },
        { name: 'b', port: 81, nodePort: 30002 },
      ],
    })
    const next = {
      metadata,
      spec: {
        type: 'NodePort',
        ports: [
          { name: 'b', port: 82 },
          { name: 'a', port: 80, nodePort: 30002 },
        ],
        ipFamilies: ['IPv4'],
      },
    }
    const { spec } = trial.update(next, old).object
    assert.deepEqual([spec.clusterIP, spec.clusterIPs], ['10.0.0.1', ['10.0.0.1']])
    assert.deepEqual(
      spec.ports?.map(({ nodePort }) => nodePort),
      [undefined, 30002],
    )
  })

  it('loses fields of its old type, unless the client changed them too', () => {
    const old = of({
      type: 'LoadBalancer',
      ports: [{ port: 80, nodePort: 30001 }],
      externalTrafficPolicy: 'Local',
      healthCheckNodePort: 30002,
      loadBalancerClass: 'x',
    })
    const sent = old['spec'] as object
    const plain = trial.update({ metadata, spec: { ...sent, type: 'ClusterIP' } }, old)
    assert.deepEqual(plain.errors, [])
    assert.deepEqual(Object.keys(plain.object.spec).sort(), [
      'clusterIP',
      'clusterIPs',
      'internalTrafficPolicy',
      'ipFamilies',
      'ipFamilyPolicy',
      'ports',
      'sessionAffinity',
      'type',
    ])
    const name = trial.update({ metadata, spec: { ...sent, type: 'ExternalName', externalName: 'x.y' } }, old)
    assert.deepEqual(
      [name.errors, name.object.spec.clusterIPs, name.object.spec.ipFamilies],
      [[], undefined, undefined],
    )
    const changed = trial.update({ metadata, spec: { ...sent, type: 'ClusterIP', healthCheckNodePort: 30003 } }, old)
    assert.equal(changed.errors.length, 1)
  })

  const updates: [string, Sent, Sent, string[]][] = [
    [
      'its clusterIP',
      { clusterIP: '10.0.0.2', clusterIPs: ['10.0.0.2'] },
      {},
      ['spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set'],
    ],
    [
      'its ipFamilies to one without ipFamilyPolicy SingleStack',
      { ...both, clusterIPs: ['10.0.0.1'], ipFamilies: ['IPv4'] },
      both,
      [
        'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be set to \'SingleStack\' when releasing the secondary clusterIP',
        'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": must be set to \'SingleStack\' when releasing the secondary ipFamily',
      ],
    ],
    [
      'its first IP family',
      { ipFamilies: ['IPv6', 'IPv4'], clusterIPs: ['10.0.0.1', 'fd00::1'] },
      {},
      [
        'spec.ipFamilies[0]: Invalid value: ["10.0.0.1","fd00::1"]: may not change once set',
        'spec.clusterIPs[0]: Invalid value: "10.0.0.1": expected an IPv6 value as indicated by `ipFamilies[0]`',
        'spec.clusterIPs[1]: Invalid value: "fd00::1": expected an IPv4 value as indicated by `ipFamilies[1]`',
      ],
    ],
    [
      'its load balancer class',
      { type: 'LoadBalancer', loadBalancerClass: 'y' },
      { type: 'LoadBalancer', loadBalancerClass: 'x' },
      ['spec.loadBalancerClass: Invalid value: "y": may not change once set'],
    ],
    [
      'its health check node port',
      { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 30002 },
      { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 30001 },
      ['spec.healthCheckNodePort: Forbidden: field is immutable'],
    ],
  ]
  for (const [what, next, old, errors] of updates) {
    it(`rejects a change of ${what}`, () => assert.deepEqual(trial.update(of(next), of(old)).errors, errors))
  }

  it('may get and lose a second cluster IP', () => {
    assert.deepEqual(trial.update(of(both), of()).errors, [])
    assert.deepEqual(trial.update(of(), of(both)).errors, [])
  })

  it('from an older release gets clusterIPs and ipFamilies before validation', () => {
    const old = { metadata, spec: { clusterIP: '10.0.0.1', ports: [{ port: 80 }] } }
    const { errors, object } = trial.update({ metadata, spec: { ports: [{ port: 81 }], ipFamilies: ['IPv4'] } }, old)
    assert.deepEqual([errors, object.spec.clusterIPs], [[], ['10.0.0.1']])
  })

  it('may have load balancers in its status only with type LoadBalancer', () => {
    const status = { loadBalancer: { ingress: [{ ip: 'x', hostname: '1.2.3.4' }, { ipMode: 'VIP' }] } }
    assert.deepEqual(
      trial.update({ ...of({ type: 'LoadBalancer' }), status }, of({ type: 'LoadBalancer' }), 'status').errors,
      [
        'status.loadBalancer.ingress[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        'status.loadBalancer.ingress[0].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address',
        'status.loadBalancer.ingress[1].ipMode: Forbidden: may not be specified when `ip` is not set',
      ],
    )
    assert.deepEqual(trial.update({ ...of(), status }, of(), 'status').errors, [
      "status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'",
    ])
  })

  it('causes a warning for ignored and deprecated fields', () => {
    const spec = {
      clusterIP: 'None',
      clusterIPs: ['None'],
      externalIPs: ['1.1.1.1'],
      loadBalancerIP: '01.1.1.1',
      externalName: 'x',
      trafficDistribution: 'PreferClose',
    }
    assert.deepEqual(trial.create(of(spec)).warnings, [
      'spec.loadBalancerIP is ignored for headless services',
      'spec.externalIPs is ignored for headless services',
      'spec.loadBalancerIP: non-standard IP address "01.1.1.1" is invalid: use "1.1.1.1"',
      'spec.externalName is ignored when spec.type is not "ExternalName"',
      'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
    ])
  })

  it('calls the allocator only if the spec changed, and releases everything on deletion', async () => {
    const calls: string[] = []
    const watched = createServiceResource({
      ...allocator,
      allocate: async () => (calls.push('allocate'), async () => {}),
      release: async () => void calls.push('release'),
    })
    const writer = {
      delete: async ({ plural }: Kind, { namespace, name }: ObjectName) => calls.push(`${plural} ${namespace}/${name}`),
    }
    const object = trial.load(of())
    await watched.allocate?.(object, trial.load(of()), contextWith())
    assert.deepEqual(calls, [])
    await watched.allocate?.(object, undefined, contextWith())
    await watched.released?.(object, { ...contextWith(), writer: writer as unknown as ObjectWriter })
    assert.deepEqual(calls, ['allocate', 'endpoints ns/s', 'release'])
  })

  it('prints its addresses and ports', () => {
    const shown = (spec: Sent, status: object = {}): unknown[] => trial.cells({ ...of(spec), status }).slice(1, 5)
    assert.deepEqual(shown({}), ['ClusterIP', '10.0.0.1', '<none>', '80/TCP'])
    assert.deepEqual(
      shown({ type: 'NodePort', externalIPs: ['1.1.1.1', '2.2.2.2'], ports: [{ port: 80, nodePort: 30000 }] }),
      ['NodePort', '10.0.0.1', '1.1.1.1,2.2.2.2', '80:30000/TCP'],
    )
    const ingress = [{ hostname: 'b' }, { ip: '1.1.1.1' }, { hostname: 'b' }]
    assert.equal(
      shown({ type: 'LoadBalancer', externalIPs: ['9.9.9.9'] }, { loadBalancer: { ingress } })[2],
      '1.1.1.1,b,9.9.9.9',
    )
    assert.equal(shown({ type: 'LoadBalancer' })[2], '<pending>')
    assert.deepEqual(trial.cells({ metadata, spec: { type: 'ExternalName', externalName: 'x.y' } }).slice(1, 5), [
      'ExternalName',
      '<none>',
      'x.y',
      '<none>',
    ])
  })
})
