/** Refusal cases that all workloads share: invalid selectors and pod templates. */
import type { Json, Refusal } from '../case.ts'

/** A spec with a selector and a template that fit. */
export function labelled(): Json {
  return {
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'web', image: 'nginx' }] } },
  }
}

export const selectors: readonly Refusal[] = [
  { why: 'the name has capitals', set: { '/metadata/name': 'Web' } },
  { why: 'the spec is missing', set: { '/spec': undefined } },
  { why: 'the selector is missing', set: { '/spec/selector': undefined } },
  { why: 'the selector is empty', set: { '/spec/selector': {} } },
  { why: 'the selector selects others', set: { '/spec/selector/matchLabels/app': 'other' } },
  { why: 'the selector is not a label', set: { '/spec/selector/matchLabels/app': 'a b' } },
  {
    why: 'the selector operator is unknown',
    set: { '/spec/selector': { matchExpressions: [{ key: 'app', operator: 'Like', values: ['a'] }] } },
  },
  {
    why: 'the selector has values where none belong',
    set: { '/spec/selector': { matchExpressions: [{ key: 'app', operator: 'Exists', values: ['a'] }] } },
  },
]

const TEMPLATE = '/spec/template'

export const templates: readonly Refusal[] = [
  { why: 'the template is missing', set: { [TEMPLATE]: undefined } },
  { why: 'the template has no labels', set: { [`${TEMPLATE}/metadata`]: undefined } },
  { why: 'the template has no containers', set: { [`${TEMPLATE}/spec/containers`]: [] } },
  { why: 'a container has no image', set: { [`${TEMPLATE}/spec/containers/0/image`]: '' } },
  {
    why: 'a request is more than its limit',
    set: { [`${TEMPLATE}/spec/containers/0/resources`]: { requests: { memory: '2Gi' }, limits: { memory: '1Gi' } } },
  },
  { why: 'pods restart never', set: { [`${TEMPLATE}/spec/restartPolicy`]: 'Never' } },
  { why: 'pods have a deadline', set: { [`${TEMPLATE}/spec/activeDeadlineSeconds`]: 5 } },
]
