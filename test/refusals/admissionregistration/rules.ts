/**
 * Refusal cases: invalid rules of webhooks and policies. The rules match a group that does not exist, so that no
 * webhook is ever called.
 */
import type { Changes, Json, Refusal } from '../case.ts'

export const rule: Json = {
  operations: ['CREATE'],
  apiGroups: ['example.com'],
  apiVersions: ['v1'],
  resources: ['widgets'],
  scope: '*',
}

/** `place`: of the rule. */
export function badRules(place: string): readonly Refusal[] {
  const say = (name: string, value: unknown): Changes => ({ [`${place}/${name}`]: value })
  return [
    { why: 'a rule without operations', set: say('operations', []) },
    { why: 'a rule of all operations and more', set: say('operations', ['*', 'CREATE']) },
    { why: 'a rule with an unknown operation', set: say('operations', ['CREATE', 'GET']) },
    { why: 'a rule without groups', set: say('apiGroups', []) },
    { why: 'a rule of all groups and more', set: say('apiGroups', ['*', 'apps']) },
    { why: 'a rule without versions', set: say('apiVersions', []) },
    { why: 'a rule with an empty version', set: say('apiVersions', ['']) },
    { why: 'a rule of all versions and more', set: say('apiVersions', ['*', 'v1']) },
    { why: 'a rule without resources', set: say('resources', []) },
    { why: 'a rule with an empty resource', set: say('resources', ['']) },
    { why: 'a rule of everything and more', set: say('resources', ['*/*', 'widgets']) },
    { why: 'a rule of all resources and more', set: say('resources', ['*', 'widgets']) },
    { why: 'a rule of all subresources and one', set: say('resources', ['widgets/*', 'widgets/status']) },
    { why: 'a rule of a subresource of all and of one', set: say('resources', ['*/status', 'widgets/status']) },
    { why: 'a rule of an unknown scope', set: say('scope', 'Galaxy') },
    { why: 'an empty rule', set: { [place]: {} } },
  ]
}

/** `place`: of the selector. */
export function badSelectors(place: string, whose: string): readonly Refusal[] {
  return [
    { why: `${whose} selector with a bad key`, set: { [place]: { matchLabels: { 'a b': 'c' } } } },
    { why: `${whose} selector with a bad value`, set: { [place]: { matchLabels: { a: '-' } } } },
    {
      why: `${whose} selector with an unknown operator`,
      set: { [place]: { matchExpressions: [{ key: 'a', operator: 'Like' }] } },
    },
  ]
}

/** Invalid match conditions in the list `place`. Invalid expressions are not among them. */
export function badMatchConditions(place: string): readonly Refusal[] {
  const say = (...conditions: readonly object[]): Changes => ({ [place]: conditions })
  const many = Array.from({ length: 65 }, (_, at) => ({ name: `c${at}`, expression: 'true' }))
  return [
    { why: 'a condition without a name', set: say({ name: '', expression: 'true' }) },
    { why: 'a condition with a bad name', set: say({ name: 'a b', expression: 'true' }) },
    { why: 'a condition without an expression', set: say({ name: 'a', expression: ' ' }) },
    { why: 'a repeated condition', set: say({ name: 'a', expression: 'true' }, { name: 'a', expression: 'true' }) },
    { why: 'too many conditions', set: say(...many) },
  ]
}
