import { ReplicationControllers } from '#apis/core/v1.ts'

import type { KindCases } from '../case.ts'

export const replicationController: KindCases = {
  kind: ReplicationControllers,
  valid: {
    metadata: { name: 'web' },
    spec: {
      replicas: 1,
      selector: { app: 'web' },
      template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'web', image: 'nginx' }] } },
    },
  },
  refused: [
    { why: 'the name has capitals', set: { '/metadata/name': 'Web' } },
    { why: 'the spec is missing', set: { '/spec': undefined } },
    { why: 'the template is missing', set: { '/spec/template': undefined } },
    { why: 'there are fewer than no replicas', set: { '/spec/replicas': -1 } },
    { why: 'negative minReadySeconds of replicas', set: { '/spec/minReadySeconds': -1 } },
    { why: 'the selector selects others', set: { '/spec/selector': { app: 'other' } } },
    {
      why: 'there is neither selector nor label',
      set: { '/spec/selector': undefined, '/spec/template/metadata/labels': undefined },
    },
    { why: 'its pods restart on failure only', set: { '/spec/template/spec/restartPolicy': 'OnFailure' } },
    { why: 'its pods have a deadline', set: { '/spec/template/spec/activeDeadlineSeconds': 5 } },
    { why: 'a container has no name', set: { '/spec/template/spec/containers/0/name': '' } },
    { why: 'replicas are text', set: { '/spec/replicas': 'two' } },
    { why: 'replicas are a fraction', set: { '/spec/replicas': 1.5 } },
    { why: 'negative replicas', on: 'update', set: { '/spec/replicas': -1 } },
    {
      why: 'the labels no longer match the selector',
      on: 'update',
      set: { '/spec/template/metadata/labels/app': 'other' },
    },
    {
      why: 'negative counts in the status',
      on: 'update status',
      set: { '/status/replicas': -1, '/status/readyReplicas': -1 },
    },
    {
      why: 'more are ready than there are',
      on: 'update status',
      set: { '/status/replicas': 1, '/status/readyReplicas': 2 },
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
