import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { joinTemplate, type TemplateRules } from './template-file.ts'

const TEMPLATE: TemplateRules = {
  config: {
    kubernetes_version: 'v1.36.4',
    services: { kubelet: { extra_args: { a: '1' } }, etcd: { snapshot: true } },
  },
  editable: ['nodes', 'services.kubelet.extra_args', 'network.options'],
}
const { config } = TEMPLATE
const nodes = [{ address: '10.0.0.1' }]

describe('joinTemplate', () => {
  it('takes editable parts from the file and all others from the template', () => {
    assert.deepEqual(joinTemplate(TEMPLATE, { nodes }), { config: { ...config, nodes }, locked: [] })
    const file = { nodes, services: { kubelet: { extra_args: { b: '2' } } } }
    const joined = joinTemplate(TEMPLATE, file)
    assert.deepEqual(joined.locked, [])
    assert.deepEqual(joined.config['services'], { kubelet: { extra_args: { b: '2' } }, etcd: { snapshot: true } })
  })

  it('accepts locked parts that equal the template', () => {
    assert.deepEqual(joinTemplate(TEMPLATE, { ...config, nodes }).locked, [])
  })

  it('joins its own result to the same', () => {
    const once = joinTemplate(TEMPLATE, { nodes, network: { options: { mtu: 1400 } } })
    assert.deepEqual(joinTemplate(TEMPLATE, once.config), once)
  })

  const refused: readonly (readonly [file: Readonly<Record<string, unknown>>, locked: readonly string[]])[] = [
    [{ kubernetes_version: 'v1.35.0' }, ['kubernetes_version']],
    [{ kubernetes_version: null }, ['kubernetes_version']],
    [{ services: { etcd: { snapshot: false } } }, ['services.etcd.snapshot']],
    [{ services: { etcd: null } }, ['services.etcd']],
    [{ services: [] }, ['services']],
    [{ services: { kubelet: { image: 'evil' } } }, ['services.kubelet.image']],
    [{ ssh_key_path: '/root/.ssh/id' }, ['ssh_key_path']],
    [{ network: { plugin: 'none', options: {} } }, ['network.plugin']],
    [{ network: 'none' }, ['network']],
    [{ 'services.kubelet.extra_args': {}, x: 1 }, ['x']],
    [{ nodesmore: [1] }, ['nodesmore']],
  ]
  for (const [file, locked] of refused) {
    it(`keeps ${locked.join()} of ${JSON.stringify(file)} locked`, () => {
      const joined = joinTemplate(TEMPLATE, file)
      assert.deepEqual(joined.locked, locked)
    })
  }

  it('does not reach the prototype of objects', () => {
    const file = JSON.parse('{"__proto__":{"polluted":1},"constructor":1}') as Record<string, unknown>
    joinTemplate(TEMPLATE, file)
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
  })
})
