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
    { why: 'pods must be ready in the past', set: { '/spec/minReadySeconds': -1 } },
    {
      why: 'the strategy is unknown',
      set: { '/spec/updateStrategy': { type: 'Burn' } },
      ours: printing('{"type":"Burn"}'),
    },
    {
      why: 'nothing may be missing and nothing more',
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
      why: 'what may be missing is no number',
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
      why: 'the labels go away from the selector',
      on: 'update',
      set: { '/spec/template/metadata/labels': { app: 'b' } },
    },
    {
      why: 'the status counts below nothing',
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
