import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { activeCauses, causeOf, KeyCauses, MAX_CAUSES, withCauses } from './causes.ts'

describe('causes', () => {
  it('belong to the work and to all that follows from it', async () => {
    const seen = await withCauses(['pods/default/a@1'], async () => {
      await Promise.resolve()
      return activeCauses()
    })
    assert.deepEqual([seen, activeCauses()], [['pods/default/a@1'], []])
  })

  it('name resource, namespace, name and version', () => {
    const web = { metadata: { namespace: 'default', name: 'web', resourceVersion: '812' } }
    const node = { metadata: { name: 'one', resourceVersion: '7' } }
    assert.equal(causeOf({ group: 'apps', plural: 'deployments' }, web), 'deployments.apps/default/web@812')
    assert.equal(causeOf({ group: '', plural: 'nodes' }, node), 'nodes/one@7')
  })

  it('of a key are taken once, at most eight', () => {
    const causes = new KeyCauses()
    for (let at = 0; at < 20; at++) causes.add('default/web', `pods/default/a@${at % 10}`)
    causes.add('default/other', 'pods/default/b@1')
    assert.equal(causes.take('default/web').length, MAX_CAUSES)
    assert.deepEqual(causes.take('default/web'), [])
    assert.deepEqual(causes.take('default/other'), ['pods/default/b@1'])
  })
})
