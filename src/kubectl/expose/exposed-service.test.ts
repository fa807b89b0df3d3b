import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { exposedService, type ExposeOptions } from './exposed-service.ts'

const OPTIONS: ExposeOptions = {
  'cluster-ip': '',
  'external-ip': '',
  labels: '',
  'load-balancer-ip': '',
  name: '',
  port: '',
  protocol: '',
  selector: '',
  'session-affinity': '',
  'target-port': '',
  type: '',
}

const deployment = (ports: readonly object[], selector: object = { matchLabels: { app: 'web' } }): never =>
  ({
    kind: 'Deployment',
    metadata: { name: 'web', labels: { b: '2', a: '1' } },
    spec: { selector, template: { spec: { containers: [{ name: 'c', ports }] } } },
  }) as never

describe('Service of kubectl expose', () => {
  it('has the selector, labels and ports of the workload', () => {
    const { metadata, spec } = exposedService(deployment([{ containerPort: 80 }]), OPTIONS)
    assert.deepEqual(metadata, { name: 'web', labels: { a: '1', b: '2' } })
    assert.deepEqual(spec, { ports: [{ protocol: 'TCP', port: 80, targetPort: 80 }], selector: { app: 'web' } })
  })

  it('has a name for each of several ports, even if port numbers are equal', () => {
    const ports = [{ containerPort: 53, protocol: 'UDP' }, { containerPort: 53 }, { containerPort: 80 }]
    const { spec } = exposedService(deployment(ports), OPTIONS)
    assert.deepEqual(
      spec?.ports?.map(({ name, protocol }) => `${name} ${protocol}`),
      ['port-1-udp UDP', 'port-1-tcp TCP', 'port-2 TCP'],
    )
  })

  for (const [what, object, options, text] of [
    ['a workload without ports', deployment([]), {}, /couldn't find port via --port flag or introspection/],
    [
      'a workload without a selector',
      deployment([], {}),
      {},
      /invalid deployment: no selectors, therefore cannot be exposed/,
    ],
    ['an unsupported selector', deployment([]), { selector: 'a', port: '1' }, /unexpected label spec: a/],
    [
      'an unknown session affinity',
      deployment([]),
      { 'session-affinity': 'x', port: '1' },
      /unknown session affinity: x/,
    ],
  ] as const) {
    it(`is refused for ${what}`, () => assert.throws(() => exposedService(object, { ...OPTIONS, ...options }), text))
  }
})
