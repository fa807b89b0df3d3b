import { ClusterRoles } from '#apis/rbac/v1.ts'

import type { Changes, KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { badRules } from './rules.ts'

const gathering = (...clusterRoleSelectors: readonly unknown[]): Changes => ({
  '/aggregationRule': { clusterRoleSelectors },
})
const matching = (key: string, operator: string, values?: readonly string[]): Changes =>
  gathering({ matchExpressions: [{ key, operator, values }] })

export const clusterRole: KindCases = {
  kind: ClusterRoles,
  valid: { metadata: { name: 'refused-reader' }, rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }] },
  refused: [
    ...badRules,
    { why: 'URLs without verbs', set: { '/rules/0': { nonResourceURLs: ['/healthz'] } } },
    { why: 'an empty aggregation', set: { '/aggregationRule': {} } },
    { why: 'an empty aggregation rule', set: gathering() },
    { why: 'a selector with an unknown operator', set: matching('a', 'Like', ['b']) },
    { why: 'a selector without values', set: matching('a', 'In') },
    { why: 'a selector with values too many', set: matching('a', 'Exists', ['b']) },
    { why: 'a selector without a key', set: matching('', 'In', ['a']) },
    { why: 'a selector with a bad value', set: matching('a', 'In', ['-']) },
    { why: 'a selector with a bad label', set: gathering({ matchLabels: { 'a b': 'c' } }) },
    { why: 'a selector with a bad label value', set: gathering({ matchLabels: { a: '-' } }) },
    { why: 'the verbs are removed', on: 'update', set: { '/rules/0/verbs': [] } },
    { why: 'an empty aggregation is added', on: 'update', set: { '/aggregationRule': {} } },
    ...badMetadataUpdates,
  ],
}
