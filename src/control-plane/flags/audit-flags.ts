/** The flag group "auditing": policy, destinations and buffering of audit events. */
import { flagRows, type RowValues } from '#lib/flags/flag-rows.ts'
import type { FlagsOf } from '#lib/flags/flag-support.ts'

export type AuditSinkName = 'log' | 'webhook'

/** The common flags of log and webhook, with the defaults of the log. */
const SINK = {
  'batch-buffer-size': 'int =10000 Events that may wait to be sent; further ones are lost; only with mode batch',
  'batch-max-size': 'int =1 Events in a batch at most; only with mode batch',
  'batch-max-wait': 'duration How long an event waits for its batch to fill; only with mode batch',
  'batch-throttle-burst': 'int Batches sent at once after a pause; only with mode batch',
  'batch-throttle-enable': 'bool Whether batches are limited in number; only with mode batch',
  'batch-throttle-qps': 'float32 Batches a second on average; only with mode batch',
  mode: 'string =blocking Whether requests wait for their events: "batch" (they do not), "blocking" (they do), "blocking-strict" (they are refused when their events cannot be stored)',
  'truncate-enabled': 'bool Whether events that are too large lose their objects',
  'truncate-max-batch-size': 'int64 =10485760 Bytes of a batch; larger ones are sent in parts',
  'truncate-max-event-size':
    'int64 =102400 Bytes of an event; larger ones lose their objects, and are lost when that is not enough',
  version: 'string =audit.k8s.io/v1 Version of events: audit.k8s.io/v1',
} as const

const AUDIT = {
  'audit-log-compress': 'bool Whether files that were put aside are compressed with gzip',
  'audit-log-format': 'string =json Form of the lines: "json", or "legacy", a line of text for people',
  'audit-log-maxage': 'int =366 Days that files are kept which were put aside. 0: for ever',
  'audit-log-maxbackup': 'int =100 How many files are kept which were put aside. 0: all',
  'audit-log-maxsize': 'int =100 Megabytes at which the file is put aside and begun anew. 0: never',
  'audit-log-path': 'string File of the audit log; "-" is standard output. None: there is no audit log',
  'audit-policy-file': 'string File that says how much is recorded of which requests. None: nothing',
  'audit-webhook-batch-initial-backoff': 'duration =10s The same as --audit-webhook-initial-backoff',
  'audit-webhook-config-file': 'string Kubeconfig of a webhook that gets events',
  'audit-webhook-initial-backoff': 'duration =10s How long to wait before sending events again that could not be sent',
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
