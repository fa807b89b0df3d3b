import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ServedKind } from '#client/discovery.ts'

import { differences, type FoundObject, pairObjects } from './differences.ts'
import { pairKinds, userKinds } from './user-kinds.ts'

function kind(plural: string, fields: Partial<ServedKind> = {}): ServedKind {
  const verbs = ['create', 'get', 'list']
  return { plural, group: '', version: 'v1', namespaced: true, isPreferred: true, verbs, ...fields } as ServedKind
}

function found(of: ServedKind, name: string, fields: object = {}, metadata: object = {}): FoundObject {
  return { kind: of, object: { metadata: { namespace: 'n', name, ...metadata }, ...fields } }
}

describe('differences', () => {
  const maps = kind('configmaps')
  const changed = (before: FoundObject[], after: FoundObject[], status = false): string[] =>
    differences(pairObjects(before, after), { status }).map(
      ({ before: one, after: other }) => `${one?.metadata.name ?? '-'} ${other?.metadata.name ?? '-'}`,
    )

  it('finds created, deleted and changed objects', () => {
    const before = [found(maps, 'gone'), found(maps, 'same'), found(maps, 'new-data', { data: { a: '1' } })]
    const after = [found(maps, 'new-data', { data: { a: '2' } }), found(maps, 'same'), found(maps, 'born')]
    assert.deepEqual(changed(before, after), ['- born', 'gone -', 'new-data new-data'])
  })

  it('ignores resourceVersion, managedFields and, unless requested, status', () => {
    const one = found(maps, 'a', { status: { x: 1 } }, { resourceVersion: '1', managedFields: [{ manager: 'x' }] })
    const other = found(maps, 'a', { status: { x: 2 } }, { resourceVersion: '2' })
    assert.deepEqual(changed([one], [other]), [])
    assert.deepEqual(changed([one], [other], true), ['a a'])
  })

  it('shows no values of Secrets', () => {
    const secrets = kind('secrets')
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': 'hunter2' }
    const before = found(secrets, 'a', { data: { password: '' } })
    const after = found(secrets, 'a', { data: { password: 'aHVudGVyMg==' } }, { annotations })
    assert.deepEqual(changed([before], [after]), [])
    const [added] = differences(pairObjects([], [after]), { status: false })
    assert.doesNotMatch(JSON.stringify(added), /aHVudGVyMg|hunter2/)
  })
})

describe('userKinds', () => {
  it('are those that users write, in the preferred version', () => {
    const kinds = [
      kind('configmaps'),
      kind('events'),
      kind('nodes', { namespaced: false }),
      kind('pods', { group: 'metrics.k8s.io', verbs: ['get', 'list'] }),
      kind('autoscalers', { version: 'v1', isPreferred: false }),
      kind('autoscalers', { version: 'v2' }),
      kind('leases', { group: 'coordination.k8s.io' }),
    ]
    const names = (namespaced: boolean): string[] =>
      userKinds(kinds, { namespaced }).map(({ plural, version }) => `${plural} ${version}`)
    assert.deepEqual(names(false), ['configmaps v1', 'nodes v1', 'autoscalers v2'])
    assert.deepEqual(names(true), ['configmaps v1', 'autoscalers v2'])
  })

  it('have the same version at both moments if there is one', () => {
    const [v1, v2] = [kind('widgets', { version: 'v1' }), kind('widgets', { version: 'v2' })]
    assert.deepEqual(pairKinds([v2, v1], [v1], [v2, v1]), [{ before: v1, after: v2 }])
    assert.deepEqual(pairKinds([v1], [v1], [v2, v1]), [{ before: v1, after: v1 }])
    assert.deepEqual(pairKinds([v1], [v1], []), [{ before: v1, after: undefined }])
  })
})
