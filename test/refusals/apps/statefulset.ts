import { StatefulSets } from '#apis/apps/v1.ts'

import { printing, type KindCases } from '../case.ts'
import { labelled, selectors, templates } from './workload.ts'

const claim = {
  metadata: { name: 'data' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
}

export const statefulSet: KindCases = {
  kind: StatefulSets,
  valid: {
    metadata: { name: 'web' },
    spec: { replicas: 2, serviceName: 'web', ...labelled(), volumeClaimTemplates: [claim] },
  },
  refused: [
    ...selectors,
    ...templates,
    { why: 'there are fewer than no replicas', set: { '/spec/replicas': -1 } },
    { why: 'the service has a space', set: { '/spec/serviceName': 'a b' } },
    { why: 'negative minReadySeconds', set: { '/spec/minReadySeconds': -1 } },
    { why: 'pods are managed in an unknown way', set: { '/spec/podManagementPolicy': 'Odd' } },
    {
      why: 'the strategy is unknown',
      set: { '/spec/updateStrategy': { type: 'Burn' } },
      ours: printing('{"type":"Burn"}'),
    },
    {
      why: 'the partition is negative',
      set: { '/spec/updateStrategy': { type: 'RollingUpdate', rollingUpdate: { partition: -1 } } },
    },
    {
      why: 'deleting rolls',
      set: { '/spec/updateStrategy': { type: 'OnDelete', rollingUpdate: { partition: 1 } } },
      ours: printing('{"partition":1}'),
    },
    { why: 'a negative first ordinal', set: { '/spec/ordinals': { start: -1 } } },
    {
      why: 'claims are kept in an unknown way',
      set: { '/spec/persistentVolumeClaimRetentionPolicy': { whenDeleted: 'Odd', whenScaled: 'Odd' } },
    },
    { why: 'the service changes', on: 'update', set: { '/spec/serviceName': 'other' } },
    {
      why: 'the selector changes',
      on: 'update',
      set: { '/spec/selector': { matchLabels: { app: 'b' } }, '/spec/template/metadata/labels/app': 'b' },
    },
    {
      why: 'a claim changes',
      on: 'update',
      set: { '/spec/volumeClaimTemplates/0/spec/resources/requests/storage': '2Gi' },
    },
    { why: 'the management of pods changes', on: 'update', set: { '/spec/podManagementPolicy': 'Parallel' } },
    { why: 'negative replicas', on: 'update', set: { '/spec/replicas': -1 } },
    {
      why: 'negative counts in the status',
      on: 'update status',
      set: {
        '/status': {
          replicas: -1,
          readyReplicas: -1,
          currentReplicas: -1,
          updatedReplicas: -1,
          observedGeneration: -1,
          collisionCount: -1,
          availableReplicas: -1,
        },
      },
    },
    {
      why: 'more are there than there are',
      on: 'update status',
      set: {
        '/status': { replicas: 1, readyReplicas: 2, currentReplicas: 2, updatedReplicas: 2, availableReplicas: 3 },
      },
    },
  ],
  taken: [{ why: 'the history is negative', set: { '/spec/revisionHistoryLimit': -1 } }],
}
