import { Jobs } from '#apis/batch/v1.ts'

import { printing, type KindCases, type Trial } from '../case.ts'

const rule = (part: object): object => ({
  rules: [{ action: 'FailJob', onExitCodes: { operator: 'In', values: [1] }, ...part }],
})
const failure = (why: string, part: object): Trial => ({ why, set: { '/spec/podFailurePolicy': rule(part) } })
const indexed = { '/spec/completionMode': 'Indexed', '/spec/completions': 3, '/spec/parallelism': 1 }
const success = (why: string, rules: unknown[]): Trial => ({
  why,
  set: { ...indexed, '/spec/successPolicy': { rules } },
})

export const job: KindCases = {
  kind: Jobs,
  valid: {
    metadata: { name: 'once' },
    spec: {
      template: {
        metadata: { labels: { app: 'once' } },
        spec: { restartPolicy: 'Never', containers: [{ name: 'work', image: 'busybox' }] },
      },
    },
  },
  refused: [
    { why: 'the name has capitals', set: { '/metadata/name': 'Once' } },
    { why: 'the name of an indexed one is too long', set: { ...indexed, '/metadata/name': 'a'.repeat(63) } },
    { why: 'the spec is missing', set: { '/spec': undefined } },
    { why: 'the template is missing', set: { '/spec/template': undefined } },
    { why: 'pods restart always', set: { '/spec/template/spec/restartPolicy': 'Always' } },
    { why: 'no restart policy', set: { '/spec/template/spec/restartPolicy': undefined } },
    { why: 'parallelism is negative', set: { '/spec/parallelism': -1 } },
    { why: 'completions are negative', set: { '/spec/completions': -1 } },
    { why: 'the deadline is negative', set: { '/spec/activeDeadlineSeconds': -1 } },
    { why: 'the retries are negative', set: { '/spec/backoffLimit': -1 } },
    { why: 'the life afterwards is negative', set: { '/spec/ttlSecondsAfterFinished': -1 } },
    { why: 'the completion mode is unknown', set: { '/spec/completionMode': 'Odd' } },
    {
      why: 'an indexed one is too wide',
      set: { '/spec/completionMode': 'Indexed', '/spec/completions': 100_001, '/spec/parallelism': 100_001 },
    },
    { why: 'the selector is set by hand', set: { '/spec/selector': { matchLabels: { app: 'once' } } } },
    {
      why: 'the selector by hand selects others',
      set: { '/spec/manualSelector': true, '/spec/selector': { matchLabels: { app: 'other' } } },
    },
    { why: 'the selector by hand is missing', set: { '/spec/manualSelector': true } },
    { why: 'retries are by index of none', set: { '/spec/backoffLimitPerIndex': 1 } },
    { why: 'failed indexes are counted without retries', set: { ...indexed, '/spec/maxFailedIndexes': 1 } },
    {
      why: 'more indexes fail than there are',
      set: { ...indexed, '/spec/backoffLimitPerIndex': 1, '/spec/maxFailedIndexes': 4 },
    },
    { why: 'the replacement of pods is unknown', set: { '/spec/podReplacementPolicy': 'Odd' } },
    { why: 'the manager is not a domain', set: { '/spec/managedBy': 'me' } },
    {
      why: 'the failure policy does not fit restarts',
      set: { '/spec/template/spec/restartPolicy': 'OnFailure', '/spec/podFailurePolicy': rule({}) },
    },
    failure('the action on failure is unknown', { action: 'Cry' }),
    failure('the action on failure needs retries by index', { action: 'FailIndex' }),
    failure('a failure rule has no condition', { onExitCodes: undefined }),
    failure('a failure rule has two conditions', { onPodConditions: [{ type: 'A', status: 'True' }] }),
    failure('a failure rule is about success', { onExitCodes: { operator: 'In', values: [0] } }),
    failure('a failure rule has no codes', { onExitCodes: { operator: 'In', values: [] } }),
    failure('a failure rule has codes out of order', { onExitCodes: { operator: 'In', values: [2, 1] } }),
    failure('a failure rule has a repeated code', { onExitCodes: { operator: 'In', values: [1, 1] } }),
    failure('a failure rule operator is unknown', { onExitCodes: { operator: 'Near', values: [1] } }),
    failure('a failure rule is for a stranger', {
      onExitCodes: { containerName: 'nobody', operator: 'In', values: [1] },
    }),
    failure('a failure rule with an invalid condition', {
      onExitCodes: undefined,
      onPodConditions: [{ type: 'a b', status: 'Odd' }],
    }),
    {
      why: 'the success policy is of a plain one',
      set: { '/spec/successPolicy': { rules: [{ succeededCount: 1 }] } },
      ours: printing('{"rules":[{"succeededCount":1}]}'),
    },
    success('the success policy has no rules', []),
    success('a success rule is empty', [{}]),
    success('a success rule counts too many', [{ succeededCount: 4 }]),
    success('a success rule has an index too high', [{ succeededIndexes: '0-3' }]),
    success('a success rule has no indexes', [{ succeededIndexes: 'some' }]),
    success('a success rule has indexes out of order', [{ succeededIndexes: '2,1' }]),
    success('a success rule counts more than its indexes', [{ succeededIndexes: '0-1', succeededCount: 3 }]),
    {
      why: 'the template changes',
      on: 'update',
      set: { '/spec/template/spec/containers/0/image': 'other' },
      ours: printing(
        '{"metadata":{"labels":{"app":"once","batch.kubernetes.io/controller-uid":"<uid>","batch.kubernetes.io/job-name":"once","controller-uid":"<uid>","job-name":"once"}},"spec":{"containers":[{"name":"work","image":"other","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"Always"}],"restartPolicy":"Never","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":"default-scheduler"}}',
      ),
    },
    { why: 'the selector changes', on: 'update', set: { '/spec/selector': { matchLabels: { a: 'b' } } } },
    { why: 'completions change', on: 'update', set: { '/spec/completions': 5 } },
    {
      why: 'the completion mode changes',
      on: 'update',
      stored: { '/spec/completions': 3 },
      set: { '/spec/completionMode': 'Indexed' },
    },
    {
      why: 'the failure policy changes',
      on: 'update',
      set: { '/spec/podFailurePolicy': rule({}) },
      ours: printing('{"rules":[{"action":"FailJob","onExitCodes":{"operator":"In","values":[1]}}]}'),
    },
    {
      why: 'the manager changes',
      on: 'update',
      stored: { '/spec/managedBy': 'example.com/a' },
      set: { '/spec/managedBy': 'example.com/b' },
    },
    {
      why: 'retries by index change',
      on: 'update',
      stored: { ...indexed, '/spec/backoffLimitPerIndex': 1 },
      set: { '/spec/backoffLimitPerIndex': 2 },
    },
    { why: 'parallelism becomes negative', on: 'update', set: { '/spec/parallelism': -1 } },
    {
      why: 'negative counts in the status',
      on: 'update status',
      set: { '/status': { active: -1, succeeded: -1, failed: -1 } },
    },
    {
      why: 'the status is complete and failed',
      on: 'update status',
      set: {
        '/status': {
          conditions: [
            { type: 'Complete', status: 'True' },
            { type: 'Failed', status: 'True' },
          ],
        },
      },
    },
    {
      why: 'the status is complete without an end',
      on: 'update status',
      set: { '/status': { startTime: '2026-01-01T00:00:00Z', conditions: [{ type: 'Complete', status: 'True' }] } },
    },
    {
      why: 'the status ends before it begins',
      on: 'update status',
      set: {
        '/status': {
          startTime: '2026-01-02T00:00:00Z',
          completionTime: '2026-01-01T00:00:00Z',
          conditions: [
            { type: 'Complete', status: 'True' },
            { type: 'SuccessCriteriaMet', status: 'True' },
          ],
        },
      },
    },
  ],
  taken: [{ why: 'an indexed one has no completions', set: { '/spec/completionMode': 'Indexed' } }],
}
