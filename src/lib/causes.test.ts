import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import {
  activeCauses,
  causeOf,
  causesHeader,
  KeyCauses,
  MAX_CAUSES,
  parseCausesHeader,
  withCause,
  withCauses,
} from './causes.ts'

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
    for (let at = 0; at < 20; at++) causes.add('default/web', [`pods/default/a@${at % 10}`])
    causes.add('default/other', ['pods/default/b@1'])
    assert.equal(causes.take('default/web').length, MAX_CAUSES)
    assert.deepEqual(causes.take('default/web'), [])
    assert.deepEqual(causes.take('default/other'), ['pods/default/b@1'])
  })

  it('of a failed attempt come back with those of later changes', () => {
    const causes = new KeyCauses()
    causes.add('default/web', ['pods/default/a@1'])
    const taken = causes.take('default/web')
    causes.add('default/web', ['pods/default/a@2'])
    causes.add('default/web', taken)
    assert.deepEqual(causes.take('default/web'), ['pods/default/a@2', 'pods/default/a@1'])
  })

  it('of an attempt that has waited are the version it acts on, unless there are others', () => {
    const causes = new KeyCauses()
    const own = (): string => 'pods/default/web@7'
    assert.deepEqual(causes.take('default/web', own), [])
    causes.wait('default/web')
    assert.deepEqual(causes.take('default/web', own), ['pods/default/web@7'])
    assert.deepEqual(causes.take('default/web', own), [])
    causes.wait('default/web')
    causes.add('default/web', ['nodes/one@9'])
    assert.deepEqual(causes.take('default/web', own), ['nodes/one@9'])
    assert.deepEqual(causes.take('default/web', own), [])
  })

  it('are added before those of the caller, each once', () => {
    withCauses(['nodes/one@7', 'nodes/two@1'], () => {
      withCause('nodes/two@1', () => assert.deepEqual(activeCauses(), ['nodes/two@1', 'nodes/one@7']))
    })
  })

  it('travel in a header, unless it cannot carry them', () => {
    const sent = (...causes: string[]): string | undefined => withCauses(causes, causesHeader)
    assert.equal(causesHeader(), undefined)
    assert.equal(sent('nodes/one@7', 'pods/default/a@1'), 'nodes/one@7,pods/default/a@1')
    const strange = ['clusterroles.rbac.authorization.k8s.io/a,b@1', 'clusterroles/é@1', 'a\r\nb@1', 'a b@1', '']
    assert.equal(sent(...strange), undefined)
    assert.equal(sent('x'.repeat(301), ...strange, 'nodes/one@7'), 'nodes/one@7')
    assert.equal(sent(...Array.from({ length: 20 }, (_, at) => `nodes/one@${at}`))?.split(',').length, MAX_CAUSES)
  })

  it('are read from a header, of which a malformed one has none', () => {
    assert.deepEqual(parseCausesHeader('nodes/one@7, pods/default/a@1'), ['nodes/one@7', 'pods/default/a@1'])
    const nine = Array.from({ length: 9 }, (_, at) => `nodes/one@${at}`).join()
    const malformed = ['', ',', 'nodes/one@7,', 'a b', 'é', 'x'.repeat(301), nine, 'x,'.repeat(1_000_000)]
    for (const text of malformed) assert.equal(parseCausesHeader(text), undefined, text.slice(0, 20))
    const longest = Array.from({ length: 8 }, () => 'x'.repeat(300))
    assert.deepEqual(parseCausesHeader(longest.join(', ')), longest)
  })
})
