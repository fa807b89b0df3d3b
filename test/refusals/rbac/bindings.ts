/** Refusal cases: invalid role bindings of either kind, and changes of immutable fields. */
import type { Json, Refusal } from '../case.ts'
import { shownAs } from '../our-words.ts'

const GROUP = 'rbac.authorization.k8s.io'

export const binding: Json = {
  metadata: { name: 'refused-readers' },
  roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: 'view' },
  subjects: [
    { kind: 'User', name: 'jane', apiGroup: GROUP },
    { kind: 'ServiceAccount', name: 'builder', namespace: 'default' },
  ],
}

export const badBindings: readonly Refusal[] = [
  { why: 'no role', set: { '/roleRef': undefined } },
  { why: 'a role of another group', set: { '/roleRef/apiGroup': 'apps' } },
  { why: 'a role that is a user', set: { '/roleRef/kind': 'User' } },
  { why: 'a role without a kind', set: { '/roleRef/kind': undefined } },
  { why: 'a role without a name', set: { '/roleRef/name': '' } },
  { why: 'a role with a percent sign', set: { '/roleRef/name': 'a%' } },
  { why: 'a role with a slash and a percent sign', set: { '/roleRef/name': 'a/%' } },
  { why: 'a subject without a name', set: { '/subjects/0/name': '' } },
  { why: 'a user of another group', set: { '/subjects/0/apiGroup': 'v1' } },
  { why: 'a group of another group', set: { '/subjects/0': { kind: 'Group', name: 'dev', apiGroup: 'v1' } } },
  { why: 'a subject that is a robot', set: { '/subjects/0/kind': 'Robot' } },
  { why: 'a subject without a kind', set: { '/subjects/0': { name: 'x' } } },
  { why: 'an empty subject', set: { '/subjects': [{}] } },
  { why: 'an account with a group', set: { '/subjects/1/apiGroup': 'v1' } },
  { why: 'an account with a bad name', set: { '/subjects/1/name': 'Builder_1' } },
  { why: 'faults everywhere', set: { '/roleRef/kind': 'X', '/roleRef/name': '', '/subjects': [{ name: '' }, {}] } },
]

export const badBindingUpdates: readonly Refusal[] = [
  {
    why: 'another role',
    on: 'update',
    set: { '/roleRef/name': 'edit' },
    ...shownAs({ apiGroup: GROUP, kind: 'ClusterRole', name: 'edit' }),
  },
  { why: 'the subject loses its name', on: 'update', set: { '/subjects/0/name': '' } },
  { why: 'the name in the body is another', on: 'update', set: { '/metadata/name': 'other' } },
]
