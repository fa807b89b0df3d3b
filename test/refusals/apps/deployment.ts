import { Deployments } from '#apis/apps/v1.ts'

import { printing, type KindCases } from '../case.ts'
import { labelled, selectors, templates } from './workload.ts'

const rolling = (why: string, rollingUpdate: unknown): { why: string; set: Record<string, unknown> } => ({
  why,
  set: { '/spec/strategy': { type: 'RollingUpdate', rollingUpdate } },
})

export const deployment: KindCases = {
  kind: Deployments,
  valid: { metadata: { name: 'web' }, spec: { replicas: 2, ...labelled() } },
  refused: [
    ...selectors,
    ...templates,
    { why: 'there are fewer than no replicas', set: { '/spec/replicas': -1 } },
    { why: 'replicas are text', set: { '/spec/replicas': '2' } },
    { why: 'there are more replicas than a number holds', set: { '/spec/replicas': 3_000_000_000 } },
    { why: 'the history is negative', set: { '/spec/revisionHistoryLimit': -1 } },
    { why: 'negative minReadySeconds', set: { '/spec/minReadySeconds': -1 } },
    { why: 'the deadline is negative', set: { '/spec/progressDeadlineSeconds': -1 } },
    { why: 'the deadline is too early', set: { '/spec/progressDeadlineSeconds': 5, '/spec/minReadySeconds': 5 } },
    { why: 'the strategy is unknown', set: { '/spec/strategy': { type: 'Burn' } }, ours: printing('{"type":"Burn"}') },
    { why: 'recreating rolls', set: { '/spec/strategy': { type: 'Recreate', rollingUpdate: { maxSurge: 1 } } } },
    rolling('maxUnavailable and maxSurge are 0', { maxUnavailable: 0, maxSurge: 0 }),
    rolling('more than all may be missing', { maxUnavailable: '101%' }),
    rolling('fewer than none may be missing', { maxUnavailable: -1 }),
    rolling('maxSurge that is not a number', { maxSurge: 'many' }),
    rolling('maxSurge that is a list', { maxSurge: [1] }),
    {
      why: 'the selector changes',
      on: 'update',
      set: { '/spec/selector': { matchLabels: { app: 'b' } }, '/spec/template/metadata/labels/app': 'b' },
    },
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
          updatedReplicas: -1,
          readyReplicas: -1,
          availableReplicas: -1,
          unavailableReplicas: -1,
          observedGeneration: -1,
        },
      },
    },
    {
      why: 'more are there than there are',
      on: 'update status',
      set: { '/status': { replicas: 1, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 3 } },
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
    {
      why: 'it is scaled by another name',
      on: 'update scale',
      body: {
        apiVersion: 'autoscaling/v1',
        kind: 'Scale',
        metadata: { name: 'other', namespace: 'default' },
        spec: { replicas: 1 },
      },
    },
    {
      why: 'it is scaled from an older version',
      on: 'update scale',
      body: {
        apiVersion: 'autoscaling/v1',
        kind: 'Scale',
        metadata: { name: 'web', namespace: 'default', resourceVersion: '1' },
        spec: { replicas: 1 },
      },
    },
  ],
}
