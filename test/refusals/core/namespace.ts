import { Namespaces } from '#apis/core/v1.ts'

import type { KindCases } from '../case.ts'

export const namespace: KindCases = {
  kind: Namespaces,
  valid: { metadata: { name: 'refused' } },
  refused: [
    { why: 'the name has a dot', set: { '/metadata/name': 'a.b' } },
    { why: 'the name is too long', set: { '/metadata/name': 'a'.repeat(64) } },
    { why: 'the name is missing', set: { '/metadata/name': undefined } },
    { why: 'it exists', set: { '/metadata/name': 'default' } },
    { why: 'a finalizer of the spec has no domain', set: { '/spec': { finalizers: ['mine'] } } },
    { why: 'a finalizer of the spec has a space', set: { '/spec': { finalizers: ['a b/c'] } } },
    { why: 'a finalizer has no domain', set: { '/metadata/finalizers': ['mine'] } },
    { why: 'a label is none', set: { '/metadata/labels': { a: 'b c' } } },
    {
      why: 'its policy of pods is unknown',
      set: { '/metadata/labels': { 'pod-security.kubernetes.io/enforce': 'strict' } },
    },
    {
      why: 'its policy of pods is of an unknown version',
      set: { '/metadata/labels': { 'pod-security.kubernetes.io/enforce-version': 'v2' } },
    },
    {
      why: 'its policy of pods becomes unknown',
      on: 'update',
      set: { '/metadata/labels/pod-security.kubernetes.io~1enforce': 'strict' },
    },
    { why: 'a label becomes invalid', on: 'update', set: { '/metadata/labels/a b': 'c' } },
    {
      why: 'the status terminates a namespace that is not deleted',
      on: 'update status',
      set: { '/status/phase': 'Terminating' },
    },
    { why: 'finalize gets a bad finalizer', on: 'update finalize', set: { '/spec/finalizers': ['mine'] } },
  ],
  taken: [
    { why: 'it is in a namespace', set: { '/metadata/namespace': 'default' } },
    { why: 'the finalizers of the spec change by an update', on: 'update', set: { '/spec/finalizers': [] } },
  ],
}
