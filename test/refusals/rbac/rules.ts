/** Refusal cases: invalid rules of roles of either kind. */
import type { Refusal } from '../case.ts'

export const badRules: readonly Refusal[] = [
  { why: 'a rule without verbs', set: { '/rules/0/verbs': [] } },
  { why: 'a rule that lacks verbs', set: { '/rules/0/verbs': undefined } },
  { why: 'a rule without groups', set: { '/rules/0/apiGroups': [] } },
  { why: 'a rule without resources', set: { '/rules/0/resources': [] } },
  { why: 'an empty rule', set: { '/rules/0': {} } },
  { why: 'two bad rules', set: { '/rules': [{}, { verbs: ['get'] }] } },
  { why: 'URLs beside resources', set: { '/rules/0/nonResourceURLs': ['/healthz', '/livez'] } },
  {
    why: 'URLs beside names',
    set: { '/rules/0': { verbs: ['get'], resourceNames: ['a'], nonResourceURLs: ['/healthz'] } },
  },
  { why: 'verbs that are a text', set: { '/rules/0/verbs': 'get' } },
  { why: 'a name with a slash', set: { '/metadata/name': 'a/b' } },
  { why: 'a name with a percent sign', set: { '/metadata/name': 'a%b' } },
  { why: 'a name that is the parent folder', set: { '/metadata/name': '..' } },
  { why: 'no name', set: { '/metadata/name': undefined } },
  { why: 'a label with a space', set: { '/metadata/labels': { 'a b': 'c' } } },
]
