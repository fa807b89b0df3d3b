/** Refusal cases: invalid fields of admission policies and bindings of either kind, without invalid expressions. */
import type { Changes, Json, Refusal } from '../case.ts'
import { badMatchConditions, badRules, badSelectors, rule } from './rules.ts'

export const matchConstraints: Json = { resourceRules: [rule] }

/** `place`: of what to match. */
function badMatches(place: string): readonly Refusal[] {
  return [
    { why: 'an unknown match policy', set: { [`${place}/matchPolicy`]: 'Loose' } },
    ...badRules(`${place}/resourceRules/0`),
    { why: 'a rule with a bad object name', set: { [`${place}/resourceRules/0/resourceNames`]: ['a/b'] } },
    { why: 'a rule with a repeated object name', set: { [`${place}/resourceRules/0/resourceNames`]: ['a', 'a'] } },
    { why: 'a bad exception', set: { [`${place}/excludeResourceRules`]: [{ ...rule, operations: [] }] } },
    ...badSelectors(`${place}/namespaceSelector`, 'a namespace'),
    ...badSelectors(`${place}/objectSelector`, 'an object'),
  ]
}

const variable = (name: string, expression: string): Changes => ({ '/spec/variables': [{ name, expression }] })
const params = (apiVersion: string, kind: string): Changes => ({ '/spec/paramKind': { apiVersion, kind } })

export const badPolicies: readonly Refusal[] = [
  { why: 'an unknown failure policy', set: { '/spec/failurePolicy': 'Retry' } },
  { why: 'no match constraints', set: { '/spec/matchConstraints': undefined } },
  { why: 'no rules', set: { '/spec/matchConstraints/resourceRules': [] } },
  ...badMatches('/spec/matchConstraints'),
  ...badMatchConditions('/spec/matchConditions'),
  { why: 'empty parameters', set: params('', '') },
  { why: 'parameters of a bad group', set: params('A_b/v1', 'Widget') },
  { why: 'parameters of a bad version', set: params('example.com/V_1', 'Widget') },
  { why: 'parameters of no version', set: params('example.com/', 'Widget') },
  { why: 'parameters of a group too deep', set: params('a/b/c', 'Widget') },
  { why: 'parameters of a bad kind', set: params('example.com/v1', 'Wid_get') },
  { why: 'a variable without a name', set: variable(' ', 'true') },
  { why: 'a variable without an expression', set: variable('a', ' ') },
  { why: 'a name with capitals', set: { '/metadata/name': 'Refused' } },
  { why: 'the rules are removed', on: 'update', set: { '/spec/matchConstraints/resourceRules': [] } },
  { why: 'the failure policy becomes invalid', on: 'update', set: { '/spec/failurePolicy': 'Retry' } },
  { why: 'no resource version', on: 'update', set: { '/metadata/resourceVersion': undefined } },
]

const paramRef = (members: object): Changes => ({ '/spec/paramRef': { parameterNotFoundAction: 'Deny', ...members } })

export const badPolicyBindings: readonly Refusal[] = [
  { why: 'no policy', set: { '/spec/policyName': '' } },
  { why: 'a policy with a bad name', set: { '/spec/policyName': 'A_b' } },
  { why: 'parameters without a name', set: paramRef({}) },
  { why: 'parameters that climb', set: paramRef({ name: '..' }) },
  { why: 'parameters by name and by selector', set: paramRef({ name: 'a', selector: {} }) },
  { why: 'parameters by a bad selector', set: paramRef({ selector: { matchLabels: { 'a b': 'c' } } }) },
  { why: 'no parameterNotFoundAction', set: paramRef({ name: 'a', parameterNotFoundAction: undefined }) },
  { why: 'an unknown parameterNotFoundAction', set: paramRef({ name: 'a', parameterNotFoundAction: 'Ask' }) },
  ...badMatches('/spec/matchResources'),
  { why: 'a name with capitals', set: { '/metadata/name': 'Refused' } },
  { why: 'the policy is removed', on: 'update', set: { '/spec/policyName': '' } },
  { why: 'no resource version', on: 'update', set: { '/metadata/resourceVersion': undefined } },
]
