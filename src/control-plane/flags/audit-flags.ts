/** The group "auditing": what is put on record of requests, where, and how much they wait for it. */
import type { FlagsOf } from '#lib/flags/flag-support.ts'
import { type Flag, flag } from '#lib/flags/flags.ts'
import { bool, duration, float32, int, type Kind, string } from '#lib/flags/kinds.ts'

import { int64 } from './serving-flags.ts'

export type AuditSinkName = 'log' | 'webhook'

/** What the log and the webhook both have, by the end of the flag's name. */
export interface AuditSinkValues {
  readonly 'batch-buffer-size': number
  readonly 'batch-max-size': number
  readonly 'batch-max-wait': number
  readonly 'batch-throttle-burst': number
  readonly 'batch-throttle-enable': boolean
  readonly 'batch-throttle-qps': number
  readonly mode: string
  readonly 'truncate-enabled': boolean
  readonly 'truncate-max-batch-size': number
  readonly 'truncate-max-event-size': number
  readonly version: string
}

type Named<S extends AuditSinkName> = { readonly [N in keyof AuditSinkValues as `audit-${S}-${N}`]: AuditSinkValues[N] }

export interface AuditValues extends Named<'log'>, Named<'webhook'> {
  readonly 'audit-log-compress': boolean
  readonly 'audit-log-format': string
  readonly 'audit-log-maxage': number
  readonly 'audit-log-maxbackup': number
  readonly 'audit-log-maxsize': number
  readonly 'audit-log-path': string
  readonly 'audit-policy-file': string
  readonly 'audit-webhook-batch-initial-backoff': number
  readonly 'audit-webhook-config-file': string
  readonly 'audit-webhook-initial-backoff': number
}

type Defaults = Pick<
  AuditSinkValues,
  'mode' | `batch-${'max-size' | 'max-wait' | `throttle-${'enable' | 'qps' | 'burst'}`}`
>

const BATCH_ONLY = 'only with mode batch'

function sinkFlags<S extends AuditSinkName>(sink: S, defaults: Defaults): FlagsOf<Named<S>> {
  const flags: { readonly [N in keyof AuditSinkValues]: Flag<AuditSinkValues[N]> } = {
    'batch-buffer-size': flag(int, 10_000, `Events that may wait to be sent; further ones are lost; ${BATCH_ONLY}`),
    'batch-max-size': flag(int, defaults['batch-max-size'], `Events in a batch at most; ${BATCH_ONLY}`),
    'batch-max-wait': flag(
      duration,
      defaults['batch-max-wait'],
      `How long an event waits for its batch to fill; ${BATCH_ONLY}`,
    ),
    'batch-throttle-burst': flag(
      int,
      defaults['batch-throttle-burst'],
      `Batches sent at once after a pause; ${BATCH_ONLY}`,
    ),
    'batch-throttle-enable': flag(
      bool,
      defaults['batch-throttle-enable'],
      `Whether batches are limited in number; ${BATCH_ONLY}`,
    ),
    'batch-throttle-qps': flag(float32, defaults['batch-throttle-qps'], `Batches a second on average; ${BATCH_ONLY}`),
    mode: flag(
      string,
      defaults.mode,
      'Whether requests wait for their events: "batch" (they do not), "blocking" (they do), "blocking-strict" (they are refused when their events cannot be stored)',
    ),
    'truncate-enabled': flag(bool, false, 'Whether events that are too large lose their objects'),
    'truncate-max-batch-size': flag(int64, 10_485_760, 'Bytes of a batch; larger ones are sent in parts'),
    'truncate-max-event-size': flag(
      int64,
      102_400,
      'Bytes of an event; larger ones lose their objects, and are lost when that is not enough',
    ),
    version: flag(string, 'audit.k8s.io/v1', 'Version of events: audit.k8s.io/v1'),
  }
  return Object.fromEntries(
    Object.entries(flags).map(([name, each]) => [`audit-${sink}-${name}`, each]),
  ) as unknown as FlagsOf<Named<S>>
}

const backoff = (usage: string, deprecated?: string): Flag<number> =>
  flag(duration satisfies Kind<number>, 10_000, usage, deprecated === undefined ? {} : { deprecated })

export const AUDIT_FLAGS: FlagsOf<AuditValues> = {
  ...sinkFlags('log', {
    mode: 'blocking',
    'batch-max-size': 1,
    'batch-max-wait': 0,
    'batch-throttle-enable': false,
    'batch-throttle-qps': 0,
    'batch-throttle-burst': 0,
  }),
  ...sinkFlags('webhook', {
    mode: 'batch',
    'batch-max-size': 400,
    'batch-max-wait': 30_000,
    'batch-throttle-enable': true,
    'batch-throttle-qps': 10,
    'batch-throttle-burst': 15,
  }),
  'audit-log-compress': flag(bool, false, 'Whether files that were put aside are compressed with gzip'),
  'audit-log-format': flag(string, 'json', 'Form of the lines: "json", or "legacy", a line of text for people'),
  'audit-log-maxage': flag(int, 366, 'Days that files are kept which were put aside. 0: for ever'),
  'audit-log-maxbackup': flag(int, 100, 'How many files are kept which were put aside. 0: all'),
  'audit-log-maxsize': flag(int, 100, 'Megabytes at which the file is put aside and begun anew. 0: never'),
  'audit-log-path': flag(string, '', 'File of the audit log; "-" is standard output. None: there is no audit log'),
  'audit-policy-file': flag(string, '', 'File that says how much is recorded of which requests. None: nothing'),
  'audit-webhook-batch-initial-backoff': backoff(
    'The same as --audit-webhook-initial-backoff',
    'Deprecated, use --audit-webhook-initial-backoff instead.',
  ),
  'audit-webhook-config-file': flag(string, '', 'Kubeconfig of a webhook that gets events'),
  'audit-webhook-initial-backoff': backoff('How long to wait before sending events again that could not be sent'),
}
