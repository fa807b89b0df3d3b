import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { cronJob } from './cronjob.ts'

const { create, update, read, cells } = tryRules(cronJob)

const body = {
  metadata: { name: 'backup', namespace: 'ns', generation: 2 },
  spec: {
    schedule: '0 3 * * *',
    jobTemplate: {
      spec: { template: { spec: { containers: [{ name: 'c', image: 'i:1' }], restartPolicy: 'OnFailure' } } },
    },
  },
}

test('a CronJob has concurrencyPolicy Allow and history limits by default', () => {
  const { jobTemplate, ...rest } = read(body).spec
  assert.deepEqual(rest, {
    schedule: '0 3 * * *',
    concurrencyPolicy: 'Allow',
    suspend: false,
    successfulJobsHistoryLimit: 3,
    failedJobsHistoryLimit: 1,
  })
  assert.equal(jobTemplate.spec.completions, undefined)
})

test('a CronJob rejects invalid specs', async () => {
  assert.deepEqual((await create(body)).errors, [])
  const iana = 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones'
  const table: readonly (readonly [string, unknown, readonly string[]])[] = [
    ['spec.schedule', '', ['spec.schedule: Required value']],
    [
      'spec.schedule',
      '61 * * * *',
      ['spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61'],
    ],
    [
      'spec.schedule',
      'TZ=UTC 0 0 * * *',
      [
        'spec.schedule: Invalid value: "TZ=UTC 0 0 * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead',
      ],
    ],
    ['spec.timeZone', '', ['spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string']],
    [
      'spec.timeZone',
      'Europe/Nowhere',
      ['spec.timeZone: Invalid value: "Europe/Nowhere": unknown time zone Europe/Nowhere'],
    ],
    ['spec.timeZone', '../x', ['spec.timeZone: Invalid value: "../x": unknown time zone ../x']],
    ['spec.timeZone', 'Local', [`spec.timeZone: Invalid value: "Local": ${iana}`]],
    [
      'spec.timeZone',
      'local',
      [
        `spec.timeZone: Invalid value: "local": ${iana}`,
        'spec.timeZone: Invalid value: "local": unknown time zone local',
      ],
    ],
    [
      'spec.concurrencyPolicy',
      'Queue',
      ['spec.concurrencyPolicy: Unsupported value: "Queue": supported values: "Allow", "Forbid", "Replace"'],
    ],
    [
      'spec.startingDeadlineSeconds',
      -1,
      ['spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0'],
    ],
    [
      'spec.jobTemplate.spec.selector',
      { matchLabels: { a: 'b' } },
      ['spec.jobTemplate.spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: `selector` will be auto-generated'],
    ],
    [
      'spec.jobTemplate.spec.manualSelector',
      true,
      ['spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"'],
    ],
    [
      'spec.jobTemplate.spec.template.spec.restartPolicy',
      'Always',
      ['spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
    ],
    [
      'metadata.name',
      'n'.repeat(53),
      [`metadata.name: Invalid value: "${'n'.repeat(53)}": must be no more than 52 characters`],
    ],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, String(value))
  }
})

test('a CronJob keeps a time zone in the schedule if the old object has it, unless timeZone is set', async () => {
  const old = changed(body, 'spec.schedule', 'TZ=UTC 0 0 * * *')
  const { errors, warnings } = await update(changed(old, 'spec.suspend', true), old)
  assert.deepEqual(errors, [])
  assert.match(warnings.at(-1) ?? '', /^cannot use TZ or CRON_TZ in spec\.spec\.schedule, use timeZone instead/)
  assert.deepEqual((await update(changed(old, 'spec.timeZone', 'UTC'), old)).errors, [
    'spec.schedule: Invalid value: "TZ=UTC 0 0 * * *": cannot use both timeZone field and TZ or CRON_TZ in schedule',
  ])
})

test('a CronJob keeps an overlong name and an unknown time zone that the old object has', async () => {
  const old = changed(changed(body, 'metadata.name', 'n'.repeat(53)), 'spec.timeZone', 'Europe/Nowhere')
  const { errors, object } = await update(changed(old, 'spec.suspend', true), old)
  assert.deepEqual(errors, [])
  assert.equal(object.metadata.generation, 3)
})

test('a CronJob prints its last schedule time', () => {
  assert.deepEqual(cells(body), [
    'backup',
    '0 3 * * *',
    '<none>',
    'False',
    0,
    '<none>',
    '<unknown>',
    'c',
    'i:1',
    '<none>',
  ])
  const status = { active: [{ name: 'j' }], lastScheduleTime: '2026-01-01T00:00:00Z' }
  const later = cells({ ...changed(body, 'spec.timeZone', 'UTC'), status }, Date.parse('2026-01-01T03:00:00Z'))
  assert.deepEqual(later.slice(2, 6), ['UTC', 'False', 1, '3h'])
})
