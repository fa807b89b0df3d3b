import { ValidatingAdmissionPolicies } from '#apis/admissionregistration/v1.ts'

import type { Changes, KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { badPolicies, matchConstraints } from './policies.ts'

const validation = (members: object): Changes => ({ '/spec/validations': [{ expression: 'true', ...members }] })
const annotations = (...list: readonly object[]): Changes => ({ '/spec/auditAnnotations': list })
const status = (members: object): Changes => ({ '/status': members })

export const validatingAdmissionPolicy: KindCases = {
  kind: ValidatingAdmissionPolicies,
  valid: {
    metadata: { name: 'refused' },
    spec: { failurePolicy: 'Ignore', matchConstraints, validations: [{ expression: 'true' }] },
  },
  refused: [
    ...badPolicies,
    { why: 'no validations', set: { '/spec/validations': [] } },
    { why: 'a check without an expression', set: validation({ expression: '' }) },
    { why: 'a check with a blank message', set: validation({ message: ' ' }) },
    { why: 'a check with a message of two lines', set: validation({ message: 'a\nb' }) },
    { why: 'a check with a blank message expression', set: validation({ messageExpression: ' ' }) },
    { why: 'a check with an unknown reason', set: validation({ reason: 'Because' }) },
    { why: 'an annotation with a bad key', set: annotations({ key: 'a b', valueExpression: "'x'" }) },
    { why: 'an annotation without a value', set: annotations({ key: 'a', valueExpression: ' ' }) },
    { why: 'an annotation too long', set: annotations({ key: 'a', valueExpression: `'${'x'.repeat(5120)}'` }) },
    {
      why: 'a repeated annotation',
      set: annotations({ key: 'a', valueExpression: "'x'" }, { key: 'a', valueExpression: "'x'" }),
    },
    { why: 'the checks are removed', on: 'update', set: { '/spec/validations': [] } },
    {
      why: 'a warning without a text',
      on: 'update status',
      set: status({ typeChecking: { expressionWarnings: [{ fieldRef: 'spec', warning: '' }] } }),
    },
    {
      why: 'an empty warning',
      on: 'update status',
      set: status({ typeChecking: { expressionWarnings: [{ fieldRef: ' ', warning: 'w' }] } }),
    },
    {
      why: 'a bad condition',
      on: 'update status',
      set: status({
        conditions: [{ type: 'a b', status: 'Maybe', reason: '', message: '', lastTransitionTime: null }],
      }),
    },
    ...badMetadataUpdates,
  ],
}
