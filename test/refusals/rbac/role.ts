import { Roles } from '#apis/rbac/v1.ts'

import type { KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { badRules } from './rules.ts'

export const role: KindCases = {
  kind: Roles,
  valid: { metadata: { name: 'reader' }, rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }] },
  refused: [
    ...badRules,
    { why: 'a URL in a namespace', set: { '/rules/0': { verbs: ['get'], nonResourceURLs: ['/healthz'] } } },
    { why: 'the verbs are removed', on: 'update', set: { '/rules/0/verbs': [] } },
    { why: 'a URL is added', on: 'update', set: { '/rules/0/nonResourceURLs': ['/healthz'] } },
    { why: 'the name in the body is another', on: 'update', set: { '/metadata/name': 'other' } },
    ...badMetadataUpdates,
  ],
}
