/** The flag group "auditing": policy, destinations and buffering of audit events. */
import { flagRows, type RowValues } from '#lib/flags/flag-rows.ts'
import type { FlagsOf } from '#lib/flags/flag-support.ts'

export type AuditSinkName = 'log' | 'webhook'

/** The common flags of log and webhook, with the defaults of the log. */
const SINK = {
  'batch-buffer-size': 'int =10000 Maximum number of queued events. The server drops further ones. Only in batch mode.',
  'batch-max-size': 'int =1 Maximum number of events in a batch. Only in batch mode.',
  'batch-max-wait': 'duration Maximum time that an event waits until its batch is full. Only in batch mode.',
  'batch-throttle-burst': 'int Maximum number of batches in a burst. Only in batch mode.',
  'batch-throttle-enable': 'bool If true, limit the rate of batches. Only in batch mode.',
  'batch-throttle-qps': 'float32 Maximum average number of batches per second. Only in batch mode.',
  mode: 'string =blocking "batch" buffers events, "blocking" delays each response until its event is written, "blocking-strict" also fails requests whose event cannot be written.',
  'truncate-enabled': 'bool If true, omit objects from events that are too large.',
  'truncate-max-batch-size': 'int64 =10485760 Maximum size of a batch in bytes. The server splits larger ones.',
  'truncate-max-event-size':
    'int64 =102400 Maximum size of an event in bytes. The server omits the objects of larger ones, and drops events that are still too large.',
  version: 'string =audit.k8s.io/v1 Version of events: audit.k8s.io/v1',
} as const

const AUDIT = {
  'audit-log-compress': 'bool If true, compress rotated files with gzip.',
  'audit-log-format': 'string =json Format of the lines: "json", or "legacy" for one line of text per event.',
  'audit-log-maxage': 'int =366 Maximum age of rotated files in days. 0 means no limit.',
  'audit-log-maxbackup': 'int =100 Maximum number of rotated files. 0 means no limit.',
  'audit-log-maxsize': 'int =100 Size in megabytes at which the file is rotated. 0 disables rotation.',
  'audit-log-path': 'string File of the audit log. "-" means standard output. If empty, there is no audit log.',
  'audit-policy-file': 'string File with the audit policy. If empty, no events are recorded.',
  'audit-webhook-batch-initial-backoff': 'duration =10s Same as --audit-webhook-initial-backoff.',
  'audit-webhook-config-file': 'string Kubeconfig of a webhook that receives events.',
  'audit-webhook-initial-backoff': 'duration =10s Time before the first retry of a failed batch.',
} as const

/** By the end of the flag's name. */
export interface AuditSinkValues extends RowValues<typeof SINK> {}

type AuditFlags<S extends AuditSinkName> = {
  readonly [N in keyof AuditSinkValues as `audit-${S}-${N}`]: AuditSinkValues[N]
}

export interface AuditValues extends AuditFlags<'log'>, AuditFlags<'webhook'>, RowValues<typeof AUDIT> {}

function sinkFlags<S extends AuditSinkName>(
  sink: S,
  defaults: Partial<AuditSinkValues> & Readonly<Record<string, unknown>> = {},
): FlagsOf<AuditFlags<S>> {
  const flags = Object.entries(flagRows(SINK)).map(([name, each]) => [
    `audit-${sink}-${name}`,
    { ...each, initial: defaults[name] ?? each.initial },
  ])
  return Object.fromEntries(flags) as FlagsOf<AuditFlags<S>>
}

export const AUDIT_FLAGS: FlagsOf<AuditValues> = {
  ...sinkFlags('log'),
  ...sinkFlags('webhook', {
    mode: 'batch',
    'batch-max-size': 400,
    'batch-max-wait': 30_000,
    'batch-throttle-enable': true,
    'batch-throttle-qps': 10,
    'batch-throttle-burst': 15,
  }),
  ...flagRows(
    AUDIT,
    {},
    {
      'audit-webhook-batch-initial-backoff': { deprecated: 'Deprecated, use --audit-webhook-initial-backoff instead.' },
    },
  ),
}
