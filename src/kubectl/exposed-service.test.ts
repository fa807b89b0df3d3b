import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { exposedService, type ExposeWish } from './exposed-service.ts'

const WISH: ExposeWish = {
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

describe('the service for a workload', () => {
  it('has its selector, labels and ports', () => {
    const { metadata, spec } = exposedService(deployment([{ containerPort: 80 }]), WISH)
    assert.deepEqual(metadata, { name: 'web', labels: { a: '1', b: '2' } })
    assert.deepEqual(spec, { ports: [{ protocol: 'TCP', port: 80, targetPort: 80 }], selector: { app: 'web' } })
  })

  it('names several ports, also those of one number', () => {
    const ports = [{ containerPort: 53, protocol: 'UDP' }, { containerPort: 53 }, { containerPort: 80 }]
    const { spec } = exposedService(deployment(ports), WISH)
    assert.deepEqual(
      spec?.ports?.map(({ name, protocol }) => `${name} ${protocol}`),
      ['port-1-udp UDP', 'port-1-tcp TCP', 'port-2 TCP'],
    )
  })

  for (const [what, object, wish, text] of [
    ['no port', deployment([]), {}, /couldn't find port via --port flag or introspection/],
    ['no selector', deployment([], {}), {}, /invalid deployment: no selectors, therefore cannot be exposed/],
    ['a bad selector', deployment([]), { selector: 'a', port: '1' }, /unexpected label spec: a/],
    ['no such affinity', deployment([]), { 'session-affinity': 'x', port: '1' }, /unknown session affinity: x/],
  ] as const) {
    it(`fails with ${what}`, () => assert.throws(() => exposedService(object, { ...WISH, ...wish }), text))
  }
})
