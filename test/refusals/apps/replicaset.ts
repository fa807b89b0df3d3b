import { ReplicaSets } from '#apis/apps/v1.ts'

import type { KindCases } from '../case.ts'
import { labelled, selectors, templates } from './workload.ts'

export const replicaSet: KindCases = {
  kind: ReplicaSets,
  valid: { metadata: { name: 'web' }, spec: { replicas: 2, ...labelled() } },
  refused: [
    ...selectors,
    ...templates,
    { why: 'there are fewer than no replicas', set: { '/spec/replicas': -1 } },
    { why: 'negative minReadySeconds', set: { '/spec/minReadySeconds': -1 } },
    {
      why: 'the selector changes',
      on: 'update',
      set: { '/spec/selector': { matchLabels: { app: 'b' } }, '/spec/template/metadata/labels/app': 'b' },
    },
    { why: 'negative replicas', on: 'update', set: { '/spec/replicas': -1 } },
    {
      why: 'the labels no longer match the selector',
      on: 'update',
      set: { '/spec/template/metadata/labels': { app: 'b' } },
    },
    {
      why: 'negative counts in the status',
      on: 'update status',
      set: {
        '/status': {
          replicas: -1,
          fullyLabeledReplicas: -1,
          readyReplicas: -1,
          availableReplicas: -1,
          observedGeneration: -1,
        },
      },
    },
    {
      why: 'more are there than there are',
      on: 'update status',
      set: { '/status': { replicas: 1, fullyLabeledReplicas: 2, readyReplicas: 2, availableReplicas: 3 } },
    },
    {
      why: 'it is scaled to a negative number',
      on: 'update scale',
      body: {
        apiVersion: 'autoscaling/v1',
        kind: 'Scale',
        metadata: { name: 'web', namespace: 'default' },
        spec: { replicas: -1 },
      },
    },
  ],
}
