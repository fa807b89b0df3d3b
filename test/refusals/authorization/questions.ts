/** Refusal cases: invalid access reviews. */
import type { Changes, Refusal } from '../case.ts'

const fields = (selector: object): Changes => ({ '/spec/resourceAttributes/fieldSelector': selector })
const labels = (selector: object): Changes => ({ '/spec/resourceAttributes/labelSelector': selector })
const required = (...requirements: readonly object[]): object => ({ requirements })

export const badQuestions: readonly Refusal[] = [
  { why: 'no question', set: { '/spec/resourceAttributes': undefined } },
  { why: 'an empty field selector', set: fields({}) },
  {
    why: 'two field selectors',
    set: fields({ rawSelector: 'a=b', ...required({ key: 'a', operator: 'In', values: ['b'] }) }),
  },
  { why: 'a field selector without a key', set: fields(required({ key: '', operator: 'In', values: ['b'] })) },
  { why: 'a field selector without values', set: fields(required({ key: 'a', operator: 'In' })) },
  {
    why: 'a field selector with values too many',
    set: fields(required({ key: 'a', operator: 'Exists', values: ['b'] })),
  },
  { why: 'an empty label selector', set: labels({}) },
  {
    why: 'two label selectors',
    set: labels({ rawSelector: 'a=b', ...required({ key: 'a', operator: 'In', values: ['b'] }) }),
  },
  { why: 'a label selector with a bad key', set: labels(required({ key: 'a b', operator: 'Exists' })) },
  { why: 'a label selector without values', set: labels(required({ key: 'a', operator: 'NotIn' })) },
  {
    why: 'a label selector with values too many',
    set: labels(required({ key: 'a', operator: 'DoesNotExist', values: ['b'] })),
  },
  { why: 'a label selector with a bad value', set: labels(required({ key: 'a', operator: 'In', values: ['-'] })) },
  { why: 'a verb that is a number', set: { '/spec/resourceAttributes/verb': 1 } },
]
