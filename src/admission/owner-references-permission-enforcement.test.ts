import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Access, ALLOWED, noOpinion } from '#auth/authorizer.ts'
import { refusal, sampleKind, type SampleWrite } from '#kits/admission/sample-write.ts'
import type { OwnerReference } from '#meta/object.ts'

import { createOwnerReferencesPermissionEnforcement } from './owner-references-permission-enforcement.ts'
import type { AdmissionPlugin } from './plugin.ts'

const accessText = ({ verb, group, resource, subresource, namespace, name }: Access): string =>
  `${verb} ${[resource, subresource].filter(Boolean).join('/')}.${group} ${namespace}/${name}`

/** Allows the listed accesses and records all checks. */
function create(allowed: readonly string[]): { readonly plugin: AdmissionPlugin; readonly checks: string[] } {
  const checks: string[] = []
  const plugin = createOwnerReferencesPermissionEnforcement({
    authorize(_, access) {
      checks.push(accessText(access))
      return allowed.includes(accessText(access)) ? ALLOWED : noOpinion('no')
    },
    resourcesFor({ kind }) {
      const found = { ReplicaSet: 'replicasets.apps', Node: 'nodes' }[kind]
      if (found === undefined) return []
      const { group, version, plural, namespaced } = sampleKind(found)
      return [{ group, version, resource: plural, namespaced }]
    },
  })
  return { plugin, checks }
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
    ['an object without owner references', created(), [], undefined, []],
    ['an owner reference of a new object', created(owner()), [], undefined, []],
    ['an update that keeps the owner references', updated([blocking], blocking), [], undefined, []],
    [
      'owner references in a status update of a pod',
      { ...updated([], owner()), subresource: 'status' },
      [],
      undefined,
      [],
    ],
    ['a new owner reference if the user may delete the object', updated([], owner()), [DELETE], undefined, [DELETE]],
    ['a new owner reference', updated([], owner()), [], cannotDelete, [DELETE]],
    ['removal of an owner reference', updated([owner()]), [], cannotDelete, [DELETE]],
    [
      "blockOwnerDeletion without permission for the owner's finalizers",
      created(blocking),
      [],
      cannotBlock,
      [ANYTHING, OWNER],
    ],
    [
      "blockOwnerDeletion with permission for the owner's finalizers",
      created(blocking),
      [OWNER],
      undefined,
      [ANYTHING, OWNER],
    ],
    ['blockOwnerDeletion with permission for all finalizers', created(blocking), [ANYTHING], undefined, [ANYTHING]],
    ['a repeated owner reference', created(blocking, blocking, blocking), [OWNER], undefined, [ANYTHING, OWNER]],
    [
      'blockOwnerDeletion set on an existing owner reference',
      updated([owner()], blocking),
      [DELETE],
      cannotBlock,
      [DELETE, ANYTHING, OWNER],
    ],
    ['blockOwnerDeletion removed from an owner reference', updated([blocking], owner()), [DELETE], undefined, [DELETE]],
    [
      'blockOwnerDeletion for a cluster-scoped owner',
      created(owner({ apiVersion: 'v1', kind: 'Node', name: 'n', blockOwnerDeletion: true })),
      ['update nodes/finalizers. /n'],
      undefined,
      [ANYTHING, 'update nodes/finalizers. /n'],
    ],
    [
      'blockOwnerDeletion for an owner of an unknown kind',
      created(owner({ apiVersion: 'x.example/v1', kind: 'X', blockOwnerDeletion: true })),
      [],
      'pods "p" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion x.example/v1 Kind X: no matches for kind "X" in version "x.example/v1"',
      [ANYTHING],
    ],
  ]
  for (const [what, write, allowed, message, questions] of table) {
    it(`${message === undefined ? 'admits' : 'refuses'} ${what}`, async () => {
      const { plugin, checks } = create(allowed)
      assert.equal(await refusal(plugin, write), message)
      assert.deepEqual(checks, questions)
    })
  }
})
