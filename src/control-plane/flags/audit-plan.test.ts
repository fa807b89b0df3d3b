import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { defineFlags, parseFlags } from '#lib/flags/flags.ts'

import { auditErrors } from './audit-plan.ts'
import { APISERVER_FLAGS, type Settings } from './flags.ts'

const set = defineFlags(APISERVER_FLAGS)
const flagsOf = (args: readonly string[]): Settings => parseFlags(set, args).values as unknown as Settings

describe('audit flags of kube-apiserver', () => {
  const mode = 'allowed modes are "batch,blocking,blocking-strict"'
  const table: readonly (readonly [string, string[]])[] = [
    ['--audit-log-mode=foo', []],
    ['--audit-log-path=- --audit-log-mode=foo', [`invalid audit log mode foo, ${mode}`]],
    ['--audit-webhook-config-file=x --audit-webhook-mode=foo', [`invalid audit webhook mode foo, ${mode}`]],
    [
      '--audit-log-path=- --audit-log-maxage=-1 --audit-log-maxbackup=-2 --audit-log-maxsize=-3',
      [
        "--audit-log-maxage -1 can't be a negative number",
        "--audit-log-maxbackup -2 can't be a negative number",
        "--audit-log-maxsize -3 can't be a negative number",
      ],
    ],
    [
      '--audit-log-path=- --audit-log-mode=batch --audit-log-batch-buffer-size=0 --audit-log-batch-max-size=0',
      ['invalid audit batch log buffer size 0, must be a positive number'],
    ],
    ['--audit-log-path=- --audit-log-batch-max-size=0', []],
    [
      '--audit-webhook-config-file=x --audit-webhook-batch-throttle-qps=0',
      ['invalid audit batch webhook throttle QPS 0, must be a positive number'],
    ],
    [
      '--audit-webhook-config-file=x --audit-webhook-batch-throttle-qps=0 --audit-webhook-batch-throttle-enable=false',
      [],
    ],
    [
      '--audit-log-path=- --audit-log-truncate-max-event-size=0',
      ['invalid audit truncate log max event size 0, must be a positive number'],
    ],
    [
      '--audit-log-path=- --audit-log-truncate-max-batch-size=1',
      ['invalid audit truncate log max batch size 1, must be greater than max event size (102400)'],
    ],
    [
      '--audit-log-path=- --audit-log-version=audit.k8s.io/v1beta1',
      ['invalid group version, allowed versions are ["audit.k8s.io/v1"]'],
    ],
    ['--audit-log-path=- --audit-log-version=a/b/c', ['unexpected GroupVersion string: a/b/c']],
  ]
  for (const [args, errors] of table) {
    it(`${errors.length === 0 ? 'accept' : 'reject'} ${args}`, () => {
      assert.deepEqual(auditErrors(flagsOf(args.split(' '))), errors)
    })
  }
})
