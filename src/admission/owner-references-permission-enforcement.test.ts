import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Access, ALLOWED, noOpinion } from '#apiserver/authorizers/authorizer.ts'
import type { OwnerReference } from '#meta/object.ts'

import { refusal, sampleKind, type SampleWrite } from './kit/sample-write.ts'
import { createOwnerReferencesPermissionEnforcement } from './owner-references-permission-enforcement.ts'
import type { AdmissionPlugin } from './plugin.ts'

const accessText = ({ verb, group, resource, subresource, namespace, name }: Access): string =>
  `${verb} ${[resource, subresource].filter(Boolean).join('/')}.${group} ${namespace}/${name}`

/** Allows what is in the list, and writes down what it is asked. */
function create(allowed: readonly string[]): { readonly plugin: AdmissionPlugin; readonly asked: string[] } {
  const asked: string[] = []
  const plugin = createOwnerReferencesPermissionEnforcement({
    authorize(_, access) {
      asked.push(accessText(access))
      return allowed.includes(accessText(access)) ? ALLOWED : noOpinion('no')
    },
    resourcesFor({ kind }) {
      const found = { ReplicaSet: 'replicasets.apps', Node: 'nodes' }[kind]
      if (found === undefined) return []
      const { group, version, plural, namespaced } = sampleKind(found)
      return [{ group, version, resource: plural, namespaced }]
    },
  })
  return { plugin, asked }
}

const owner = (more: Partial<OwnerReference> = {}): OwnerReference => ({
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  name: 'rs',
  uid: 'u',
  ...more,
})
const blocking = owner({ blockOwnerDeletion: true })
const pod = (...ownerReferences: OwnerReference[]): object => ({ metadata: { name: 'p', ownerReferences } })
const created = (...owners: OwnerReference[]): SampleWrite => ({ resource: 'pods', object: pod(...owners) })
const updated = (old: OwnerReference[], ...owners: OwnerReference[]): SampleWrite => ({
  ...created(...owners),
  oldObject: pod(...old),
})

const DELETE = 'delete pods. ns/p'
const ANYTHING = 'update */finalizers.* /*'
const OWNER = 'update replicasets/finalizers.apps ns/rs'
const cannotDelete = 'pods "p" is forbidden: cannot set an ownerRef on a resource you can\'t delete: no, <nil>'
const cannotBlock =
  'pods "p" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can\'t set finalizers on: no, <nil>'

describe('OwnerReferencesPermissionEnforcement', () => {
  const table: readonly (readonly [string, SampleWrite, string[], string | undefined, string[]])[] = [
    ['an object without owners', created(), [], undefined, []],
    ['an owner of a new object', created(owner()), [], undefined, []],
    ['owners that stay', updated([blocking], blocking), [], undefined, []],
    ['owners in the status of a pod', { ...updated([], owner()), subresource: 'status' }, [], undefined, []],
    ['a new owner for a user who may delete', updated([], owner()), [DELETE], undefined, [DELETE]],
    ['a new owner', updated([], owner()), [], cannotDelete, [DELETE]],
    ['an owner that is taken away', updated([owner()]), [], cannotDelete, [DELETE]],
    ['a blocked owner', created(blocking), [], cannotBlock, [ANYTHING, OWNER]],
    ['a blocked owner for its finalizer', created(blocking), [OWNER], undefined, [ANYTHING, OWNER]],
    ['a blocked owner for the finalizer of all', created(blocking), [ANYTHING], undefined, [ANYTHING]],
    ['one owner many times', created(blocking, blocking, blocking), [OWNER], undefined, [ANYTHING, OWNER]],
    [
      'an owner that is blocked from now on',
      updated([owner()], blocking),
      [DELETE],
      cannotBlock,
      [DELETE, ANYTHING, OWNER],
    ],
    ['an owner that is blocked no longer', updated([blocking], owner()), [DELETE], undefined, [DELETE]],
    [
      'an owner outside of namespaces',
      created(owner({ apiVersion: 'v1', kind: 'Node', name: 'n', blockOwnerDeletion: true })),
      ['update nodes/finalizers. /n'],
      undefined,
      [ANYTHING, 'update nodes/finalizers. /n'],
    ],
    [
      'a blocked owner of an unknown kind',
      created(owner({ apiVersion: 'x.example/v1', kind: 'X', blockOwnerDeletion: true })),
      [],
      'pods "p" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion x.example/v1 Kind X: no matches for kind "X" in version "x.example/v1"',
      [ANYTHING],
    ],
  ]
  for (const [what, write, allowed, message, questions] of table) {
    it(`${message === undefined ? 'admits' : 'refuses'} ${what}`, async () => {
      const { plugin, asked } = create(allowed)
      assert.equal(await refusal(plugin, write), message)
      assert.deepEqual(asked, questions)
    })
  }
})
