import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { refusal, type SampleWrite } from '#kits/admission/sample-write.ts'

import { createNamespaceAutoProvision } from './namespace-auto-provision.ts'

const secret: SampleWrite = { resource: 'secrets', object: { metadata: { name: 's', generateName: '' } } }

describe('NamespaceAutoProvision', () => {
  const created: string[] = []
  const plugin = createNamespaceAutoProvision({ ensure: async (name) => void created.push(name) })

  it('creates the missing namespace of a new object', async () => {
    assert.equal(await refusal(plugin, secret), undefined)
    assert.deepEqual(created.splice(0), ['ns'])
  })

  const untouched: readonly (readonly [what: string, write: SampleWrite])[] = [
    ['that exists', { ...secret, world: { namespaces: [{ metadata: { name: 'ns' } }] } }],
    ['for a dry run', { ...secret, dryRun: true }],
    ['for an update', { ...secret, oldObject: { metadata: { name: 's' } } }],
    ['for a cluster-scoped object', { resource: 'nodes', object: { metadata: { name: 'n' } } }],
    ['for a namespace', { resource: 'namespaces', object: { metadata: { name: 'ns' } }, namespace: 'ns' }],
  ]
  for (const [what, write] of untouched) {
    it(`creates no namespace ${what}`, async () => {
      assert.equal(await refusal(plugin, write), undefined)
      assert.deepEqual(created, [])
    })
  }

  it('rejects the object if it cannot create the namespace', async () => {
    const failing = createNamespaceAutoProvision({ ensure: () => Promise.reject(new Error('no room')) })
    assert.equal(await refusal(failing, secret), 'secrets "s" is forbidden: no room')
  })
})
