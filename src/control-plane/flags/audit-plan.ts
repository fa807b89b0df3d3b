/** Validation of the auditing flags. */
import { goQuote } from '#lib/go/text.ts'

import type { AuditSinkName, AuditSinkValues } from './audit-flags.ts'
import type { Settings } from './flags.ts'

const MODES = ['batch', 'blocking', 'blocking-strict']
const FORMATS = ['legacy', 'json']

/** The errors of the flags, with upstream's texts. Flags of an unused destination have none. */
export function auditErrors(flags: Settings): string[] {
  const errors: string[] = []
  if (flags['audit-log-path'] !== '') {
    errors.push(...sinkErrors('log', sinkValues('log', flags)))
    const format = flags['audit-log-format']
    if (!FORMATS.includes(format)) {
      errors.push(`invalid audit log format ${format}, allowed formats are ${goQuote(FORMATS.join(','))}`)
    }
    for (const name of ['audit-log-maxage', 'audit-log-maxbackup', 'audit-log-maxsize'] as const) {
      if (flags[name] < 0) errors.push(`--${name} ${flags[name]} can't be a negative number`)
    }
  }
  if (flags['audit-webhook-config-file'] !== '') errors.push(...sinkErrors('webhook', sinkValues('webhook', flags)))
  return errors
}

/** The flags of one destination, without the prefix of their names. */
export function sinkValues(sink: AuditSinkName, flags: Settings): AuditSinkValues {
  const start = `audit-${sink}-`
  return Object.fromEntries(
    Object.entries(flags)
      .filter(([name]) => name.startsWith(start))
      .map(([name, value]) => [name.slice(start.length), value as unknown]),
  ) as unknown as AuditSinkValues
}

function sinkErrors(sink: AuditSinkName, values: AuditSinkValues): string[] {
  const maxEvent = values['truncate-max-event-size']
  const maxBatch = values['truncate-max-batch-size']
  const errors = batchErrors(sink, values).slice(0, 1)
  if (maxEvent <= 0) {
    errors.push(`invalid audit truncate ${sink} max event size ${maxEvent}, must be a positive number`)
  } else if (maxBatch < maxEvent) {
    errors.push(
      `invalid audit truncate ${sink} max batch size ${maxBatch}, must be greater than max event size (${maxEvent})`,
    )
  }
  const { version } = values
  if (version.split('/').length > 2) errors.push(`unexpected GroupVersion string: ${version}`)
  else if (version !== 'audit.k8s.io/v1') {
    errors.push('invalid group version, allowed versions are ["audit.k8s.io/v1"]')
  }
  return errors
}

/** The first error counts. */
function batchErrors(sink: AuditSinkName, values: AuditSinkValues): string[] {
  const { mode } = values
  if (!MODES.includes(mode)) {
    return [`invalid audit ${sink} mode ${mode}, allowed modes are ${goQuote(MODES.join(','))}`]
  }
  if (mode !== 'batch') return []
  const isThrottled = values['batch-throttle-enable']
  const numbers: readonly (readonly [name: string, value: number])[] = [
    ['buffer size', values['batch-buffer-size']],
    ['max batch size', values['batch-max-size']],
    ...(isThrottled ? ([['throttle QPS', values['batch-throttle-qps']]] as const) : []),
    ...(isThrottled ? ([['throttle burst', values['batch-throttle-burst']]] as const) : []),
  ]
  return numbers
    .filter(([, value]) => value <= 0)
    .map(([name, value]) => `invalid audit batch ${sink} ${name} ${value}, must be a positive number`)
}
