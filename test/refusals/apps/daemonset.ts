import { DaemonSets } from '#apis/apps/v1.ts'

import { printing, type KindCases } from '../case.ts'
import { labelled, selectors, templates } from './workload.ts'

export const daemonSet: KindCases = {
  kind: DaemonSets,
  valid: { metadata: { name: 'agent' }, spec: labelled() },
  refused: [
    ...selectors,
    ...templates,
    { why: 'the history is negative', set: { '/spec/revisionHistoryLimit': -1 } },
    { why: 'negative minReadySeconds', set: { '/spec/minReadySeconds': -1 } },
    {
      why: 'the strategy is unknown',
      set: { '/spec/updateStrategy': { type: 'Burn' } },
      ours: printing('{"type":"Burn"}'),
    },
    {
      why: 'maxUnavailable and maxSurge are 0',
      set: { '/spec/updateStrategy': { rollingUpdate: { maxUnavailable: 0, maxSurge: 0 } } },
    },
    {
      why: 'both may be missing and more',
      set: { '/spec/updateStrategy': { rollingUpdate: { maxUnavailable: 1, maxSurge: 1 } } },
    },
    {
      why: 'more than all may be missing',
      set: { '/spec/updateStrategy': { rollingUpdate: { maxUnavailable: '101%' } } },
    },
    {
      why: 'maxUnavailable that is not a number',
      set: { '/spec/updateStrategy': { rollingUpdate: { maxUnavailable: 'half' } } },
    },
    {
      why: 'fewer than none may be missing',
      set: { '/spec/updateStrategy': { rollingUpdate: { maxUnavailable: -1 } } },
    },
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
          currentNumberScheduled: -1,
          numberMisscheduled: -1,
          desiredNumberScheduled: -1,
          numberReady: -1,
          observedGeneration: -1,
        },
      },
    },
  ],
}
