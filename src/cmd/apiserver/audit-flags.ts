/** The group "auditing". There is no audit log yet: the flags are known, and refused by name. */
import { bool, duration, float32, int, string } from '#lib/flags/kinds.ts'

import { type FlagGroup, unsupported } from './flag-support.ts'
import { int64 } from './serving-flags.ts'

const WHY = 'there is no audit log yet'

interface BatchDefaults {
  readonly mode: string
  readonly maxSize: number
  readonly maxWaitMs: number
  readonly throttle: boolean
  readonly qps: number
  readonly burst: number
}

/** What the log and the webhook both have. */
function sinkFlags(sink: 'log' | 'webhook', defaults: BatchDefaults): FlagGroup {
  return {
    [`audit-${sink}-batch-buffer-size`]: unsupported(int, 10_000, WHY),
    [`audit-${sink}-batch-max-size`]: unsupported(int, defaults.maxSize, WHY),
    [`audit-${sink}-batch-max-wait`]: unsupported(duration, defaults.maxWaitMs, WHY),
    [`audit-${sink}-batch-throttle-burst`]: unsupported(int, defaults.burst, WHY),
    [`audit-${sink}-batch-throttle-enable`]: unsupported(bool, defaults.throttle, WHY),
    [`audit-${sink}-batch-throttle-qps`]: unsupported(float32, defaults.qps, WHY),
    [`audit-${sink}-mode`]: unsupported(string, defaults.mode, WHY),
    [`audit-${sink}-truncate-enabled`]: unsupported(bool, false, WHY),
    [`audit-${sink}-truncate-max-batch-size`]: unsupported(int64, 10_485_760, WHY),
    [`audit-${sink}-truncate-max-event-size`]: unsupported(int64, 102_400, WHY),
    [`audit-${sink}-version`]: unsupported(string, 'audit.k8s.io/v1', WHY),
  }
}

export const AUDIT_FLAGS: FlagGroup = {
  ...sinkFlags('log', { mode: 'blocking', maxSize: 1, maxWaitMs: 0, throttle: false, qps: 0, burst: 0 }),
  ...sinkFlags('webhook', { mode: 'batch', maxSize: 400, maxWaitMs: 30_000, throttle: true, qps: 10, burst: 15 }),
  'audit-log-compress': unsupported(bool, false, WHY),
  'audit-log-format': unsupported(string, 'json', WHY),
  'audit-log-maxage': unsupported(int, 366, WHY),
  'audit-log-maxbackup': unsupported(int, 100, WHY),
  'audit-log-maxsize': unsupported(int, 100, WHY),
  'audit-log-path': unsupported(string, '', WHY),
  'audit-policy-file': unsupported(string, '', WHY),
  'audit-webhook-batch-initial-backoff': unsupported(duration, 10_000, WHY, {
    deprecated: 'Deprecated, use --audit-webhook-initial-backoff instead.',
  }),
  'audit-webhook-config-file': unsupported(string, '', WHY),
  'audit-webhook-initial-backoff': unsupported(duration, 10_000, WHY),
}
