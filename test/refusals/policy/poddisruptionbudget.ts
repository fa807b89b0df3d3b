import { PodDisruptionBudgets } from '#apis/policy/v1.ts'

import { printing, type KindCases } from '../case.ts'

export const podDisruptionBudget: KindCases = {
  kind: PodDisruptionBudgets,
  valid: { metadata: { name: 'web' }, spec: { minAvailable: 1, selector: { matchLabels: { app: 'web' } } } },
  refused: [
    {
      why: 'both numbers are set',
      set: { '/spec/maxUnavailable': 1 },
      ours: printing('{"minAvailable":1,"selector":{"matchLabels":{"app":"web"}},"maxUnavailable":1}'),
    },
    { why: 'the least is negative', set: { '/spec/minAvailable': -1 } },
    { why: 'the least is more than all', set: { '/spec/minAvailable': '101%' } },
    { why: 'a minimum that is not a number', set: { '/spec/minAvailable': 'half' } },
    { why: 'the most is negative', set: { '/spec/minAvailable': undefined, '/spec/maxUnavailable': '-1%' } },
    {
      why: 'the selector operator is unknown',
      set: { '/spec/selector': { matchExpressions: [{ key: 'a', operator: 'Like' }] } },
    },
    { why: 'the selector is not a label', set: { '/spec/selector/matchLabels/app': 'a b' } },
    { why: 'the policy for unhealthy pods is unknown', set: { '/spec/unhealthyPodEvictionPolicy': 'Odd' } },
    { why: 'the least is a list', set: { '/spec/minAvailable': [1] } },
    { why: 'the least becomes negative', on: 'update', set: { '/spec/minAvailable': -1 } },
    {
      why: 'both numbers become set',
      on: 'update',
      set: { '/spec/maxUnavailable': 1 },
      ours: printing('{"minAvailable":1,"selector":{"matchLabels":{"app":"web"}},"maxUnavailable":1}'),
    },
    {
      why: 'negative counts in the status',
      on: 'update status',
      set: { '/status': { disruptionsAllowed: -1, currentHealthy: -1, desiredHealthy: -1, expectedPods: -1 } },
    },
    {
      why: 'the status has a bad condition',
      on: 'update status',
      set: {
        '/status/conditions': [{ type: 'a b', status: 'Odd', reason: '', message: '', lastTransitionTime: null }],
      },
    },
  ],
  taken: [{ why: 'the name has capitals', set: { '/metadata/name': 'Web' } }],
}
