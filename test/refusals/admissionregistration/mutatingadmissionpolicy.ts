import { MutatingAdmissionPolicies } from '#apis/admissionregistration/v1.ts'

import type { Changes, KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { badPolicies, matchConstraints } from './policies.ts'

const jsonPatch = { expression: '[JSONPatch{op: "add", path: "/metadata/labels/a", value: "b"}]' }
const applyConfiguration = { expression: 'Object{}' }

const mutation = (members: object): Changes => ({ '/spec/mutations': [members] })

export const mutatingAdmissionPolicy: KindCases = {
  kind: MutatingAdmissionPolicies,
  valid: {
    metadata: { name: 'refused' },
    spec: {
      failurePolicy: 'Ignore',
      reinvocationPolicy: 'Never',
      matchConstraints,
      mutations: [{ patchType: 'JSONPatch', jsonPatch }],
    },
  },
  refused: [
    ...badPolicies,
    { why: 'no mutations', set: { '/spec/mutations': [] } },
    { why: 'a change of no type', set: mutation({ patchType: '', jsonPatch }) },
    { why: 'a change of an unknown type', set: mutation({ patchType: 'Odd', jsonPatch }) },
    { why: 'a patch that is missing', set: mutation({ patchType: 'JSONPatch' }) },
    {
      why: 'a patch that is a configuration too',
      set: mutation({ patchType: 'JSONPatch', jsonPatch, applyConfiguration }),
    },
    { why: 'a patch without an expression', set: mutation({ patchType: 'JSONPatch', jsonPatch: { expression: ' ' } }) },
    { why: 'a configuration that is missing', set: mutation({ patchType: 'ApplyConfiguration' }) },
    {
      why: 'a configuration that is a patch too',
      set: mutation({ patchType: 'ApplyConfiguration', jsonPatch, applyConfiguration }),
    },
    {
      why: 'a configuration without an expression',
      set: mutation({ patchType: 'ApplyConfiguration', applyConfiguration: { expression: ' ' } }),
    },
    { why: 'no reinvocation policy', set: { '/spec/reinvocationPolicy': '' } },
    { why: 'an unknown reinvocation policy', set: { '/spec/reinvocationPolicy': 'Always' } },
    { why: 'a change of a deleted object', set: { '/spec/matchConstraints/resourceRules/0/operations': ['DELETE'] } },
    { why: 'the changes are removed', on: 'update', set: { '/spec/mutations': [] } },
    ...badMetadataUpdates,
  ],
}
