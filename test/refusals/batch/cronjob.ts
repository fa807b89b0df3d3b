import { CronJobs } from '#apis/batch/v1.ts'

import type { KindCases } from '../case.ts'

const JOB = '/spec/jobTemplate/spec'

export const cronJob: KindCases = {
  kind: CronJobs,
  valid: {
    metadata: { name: 'nightly' },
    spec: {
      schedule: '0 3 * * *',
      jobTemplate: {
        spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'work', image: 'busybox' }] } } },
      },
    },
  },
  refused: [
    { why: 'the name has capitals', set: { '/metadata/name': 'Nightly' } },
    { why: 'the name is too long for its jobs', set: { '/metadata/name': 'a'.repeat(53) } },
    { why: 'the spec is missing', set: { '/spec': undefined } },
    { why: 'the schedule is missing', set: { '/spec/schedule': '' } },
    { why: 'the schedule has four fields', set: { '/spec/schedule': '0 3 * *' } },
    { why: 'the schedule has an hour above 23', set: { '/spec/schedule': '0 24 * * *' } },
    { why: 'the schedule is a word', set: { '/spec/schedule': '@sometimes' } },
    { why: 'the schedule names its zone', set: { '/spec/schedule': 'TZ=UTC 0 3 * * *' } },
    { why: 'the schedule has a step of 0', set: { '/spec/schedule': '*/0 * * * *' } },
    { why: 'the zone is unknown', set: { '/spec/timeZone': 'Mars/Olympus' } },
    { why: 'the zone is empty', set: { '/spec/timeZone': '' } },
    { why: 'the zone is that of the machine', set: { '/spec/timeZone': 'Local' } },
    { why: 'the policy is unknown', set: { '/spec/concurrencyPolicy': 'Odd' } },
    { why: 'the deadline is negative', set: { '/spec/startingDeadlineSeconds': -1 } },
    {
      why: 'the histories are negative',
      set: { '/spec/successfulJobsHistoryLimit': -1, '/spec/failedJobsHistoryLimit': -1 },
    },
    { why: 'the template is missing', set: { '/spec/jobTemplate': undefined } },
    { why: 'pods restart always', set: { [`${JOB}/template/spec/restartPolicy`]: 'Always' } },
    {
      why: 'jobs have a selector',
      set: { [`${JOB}/manualSelector`]: true, [`${JOB}/selector`]: { matchLabels: { a: 'b' } } },
    },
    { why: 'a negative backoff limit', set: { [`${JOB}/backoffLimit`]: -1 } },
    { why: 'the schedule becomes invalid', on: 'update', set: { '/spec/schedule': 'never' } },
    { why: 'the zone becomes invalid', on: 'update', set: { '/spec/timeZone': 'Mars/Olympus' } },
    { why: 'the containers are removed', on: 'update', set: { [`${JOB}/template/spec/containers`]: [] } },
  ],
}
