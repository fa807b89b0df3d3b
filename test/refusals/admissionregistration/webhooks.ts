/** Refusal cases: invalid fields of webhooks of either kind. */
import type { Changes, Json, Refusal } from '../case.ts'
import { badMatchConditions, badRules, badSelectors, rule } from './rules.ts'

const hook = {
  name: 'a.example.com',
  clientConfig: { url: 'https://a.example.com/check' },
  rules: [rule],
  failurePolicy: 'Ignore',
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
}

export const configuration: Json = { metadata: { name: 'refused' }, webhooks: [hook] }

const HOOK = '/webhooks/0'

const url = (text: string): Changes => ({ [`${HOOK}/clientConfig`]: { url: text } })
const service = (members: object): Changes => ({
  [`${HOOK}/clientConfig`]: { service: { namespace: 'default', name: 'hook', ...members } },
})

const badClients: readonly Refusal[] = [
  { why: 'no backend', set: { [`${HOOK}/clientConfig`]: {} } },
  { why: 'two to ask', set: { [`${HOOK}/clientConfig/service`]: { namespace: 'default', name: 'hook' } } },
  { why: 'a URL without TLS', set: url('http://a.example.com') },
  { why: 'a URL that is invalid', set: url('a%zz') },
  { why: 'a URL without a host', set: url('https:///check') },
  { why: 'a URL with a user', set: url('https://jane:secret@a.example.com') },
  { why: 'a URL with a query', set: url('https://a.example.com/?a=b') },
  { why: 'a URL with a fragment', set: url('https://a.example.com/#a') },
  { why: 'a service without names', set: service({ namespace: '', name: '' }) },
  { why: 'a service with a port too high', set: service({ port: 65_536 }) },
  { why: 'a service with port 0', set: service({ port: 0 }) },
  { why: 'a service with a relative path', set: service({ path: 'check' }) },
  { why: 'a service with an empty path', set: service({ path: '//' }) },
  { why: 'a service with an empty part of its path', set: service({ path: '/a//b' }) },
  { why: 'a service with a bad part of its path', set: service({ path: '/a/B_c' }) },
]

export const badWebhooks: readonly Refusal[] = [
  { why: 'a webhook without a name', set: { [`${HOOK}/name`]: '' } },
  { why: 'a webhook with a short name', set: { [`${HOOK}/name`]: 'a.b' } },
  { why: 'a webhook with a bad name', set: { [`${HOOK}/name`]: 'a.b.C_d' } },
  { why: 'a repeated webhook', set: { '/webhooks/-': hook } },
  { why: 'an unknown failure policy', set: { [`${HOOK}/failurePolicy`]: 'Retry' } },
  { why: 'an unknown match policy', set: { [`${HOOK}/matchPolicy`]: 'Loose' } },
  { why: 'side effects', set: { [`${HOOK}/sideEffects`]: 'Some' } },
  { why: 'unknown side effects', set: { [`${HOOK}/sideEffects`]: undefined } },
  { why: 'no patience', set: { [`${HOOK}/timeoutSeconds`]: 0 } },
  { why: 'too much patience', set: { [`${HOOK}/timeoutSeconds`]: 31 } },
  { why: 'no review versions', set: { [`${HOOK}/admissionReviewVersions`]: [] } },
  { why: 'a repeated review version', set: { [`${HOOK}/admissionReviewVersions`]: ['v1', 'v1'] } },
  { why: 'a bad review version', set: { [`${HOOK}/admissionReviewVersions`]: ['v1', 'V_2'] } },
  { why: 'no review version we know', set: { [`${HOOK}/admissionReviewVersions`]: ['v3'] } },
  ...badClients,
  ...badRules(`${HOOK}/rules/0`),
  ...badSelectors(`${HOOK}/namespaceSelector`, 'a namespace'),
  ...badSelectors(`${HOOK}/objectSelector`, 'an object'),
  ...badMatchConditions(`${HOOK}/matchConditions`),
  { why: 'a name with capitals', set: { '/metadata/name': 'Refused' } },
  { why: 'side effects come', on: 'update', set: { [`${HOOK}/sideEffects`]: 'Some' } },
  { why: 'the operations are removed', on: 'update', set: { [`${HOOK}/rules/0/operations`]: [] } },
  { why: 'the same webhook is added', on: 'update', set: { '/webhooks/-': hook } },
  {
    why: 'no review version we know is left',
    on: 'update',
    set: { [`${HOOK}/admissionReviewVersions`]: ['v3'] },
  },
  { why: 'no resource version', on: 'update', set: { '/metadata/resourceVersion': undefined } },
]
