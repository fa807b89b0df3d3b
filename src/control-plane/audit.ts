/** Auditing as the flags say: policy, log and webhook, checked, opened and put together. */
import type { Writable } from 'node:stream'

import { schemaFor } from '#apis/schemas.ts'
import { type Audit, createAudit } from '#apiserver/audit/audit.ts'
import { createBufferedSink } from '#apiserver/audit/buffered.ts'
import { legacyText } from '#apiserver/audit/event.ts'
import { createLogSink, type LineWriter, type LogFormat } from '#apiserver/audit/log-sink.ts'
import { createAuditMetrics } from '#apiserver/audit/metrics.ts'
import { createPolicyEvaluator } from '#apiserver/audit/policy.ts'
import { openRotatingFile } from '#apiserver/audit/rotating-file.ts'
import { ignoringErrors, type ReportLoss, type Sink, unionOf } from '#apiserver/audit/sink.ts'
import { createTruncatingSink } from '#apiserver/audit/truncate.ts'
import { createWebhookSink } from '#apiserver/audit/webhook-sink.ts'
import type { Clock } from '#lib/clock.ts'
import { goQuote } from '#lib/go-text.ts'
import { createHttpClient } from '#lib/http/client.ts'
import type { Logger } from '#lib/log.ts'
import { ProgramError } from '#lib/program.ts'
import type { Random } from '#lib/random.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import { parseAuditPolicy } from './config/audit-policy.ts'
import { fileErrorText } from './config/config-kind.ts'
import type { AuditSinkName, AuditSinkValues } from './flags/audit-flags.ts'
import type { ApiServerFlags } from './flags/flags.ts'
import { readWebhookConfig } from './review-client.ts'

const MODES = ['batch', 'blocking', 'blocking-strict']
const FORMATS = ['legacy', 'json']

/** What is wrong with the flags, in upstream's words. Of a sink that is not used, nothing is. */
export function auditErrors(flags: ApiServerFlags): string[] {
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

function sinkValues(sink: AuditSinkName, flags: ApiServerFlags): AuditSinkValues {
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

/** The first counts. */
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

export interface AuditTools {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: ServerMeters
  readonly stdout: Writable
  readonly readFile: (path: string) => Promise<string>
  /** The absolute path of a file that is named relative to where the program was started. */
  readonly resolve: (path: string) => string
}

/** Undefined when nothing is recorded. Throws ProgramError for files that cannot be used. */
export async function openAudit(flags: ApiServerFlags, tools: AuditTools): Promise<Audit | undefined> {
  const policyFile = flags['audit-policy-file']
  const metrics = createAuditMetrics(tools.metrics)
  const reportLoss: ReportLoss = (plugin, error, lost) => {
    metrics.lost(plugin, lost.length)
    const what = `Error in audit plugin '${plugin}' affecting ${lost.length} audit events`
    tools.log.error(error, what, { events: () => lost.map(legacyText).join('\n') })
  }
  if (policyFile === '') {
    for (const sink of usedSinks(flags)) {
      tools.log.v(2)?.info(`No audit policy file provided, no events will be recorded for ${sink} backend`)
    }
    return undefined
  }
  const policy = await readPolicy(policyFile, tools)
  const sinks = await openSinks(flags, tools, reportLoss)
  if (sinks.length === 0) return undefined
  const sink = unionOf(sinks)
  tools.log.v(2)?.info(`Using audit backend: ${sink.name}`)
  return createAudit({ clock: tools.clock, evaluate: createPolicyEvaluator(policy), sink, metrics, schemaFor })
}

function usedSinks(flags: ApiServerFlags): AuditSinkName[] {
  return [
    ...(flags['audit-log-path'] === '' ? [] : (['log'] as const)),
    ...(flags['audit-webhook-config-file'] === '' ? [] : (['webhook'] as const)),
  ]
}

async function readPolicy(file: string, { readFile, log }: AuditTools): Promise<ReturnType<typeof parseAuditPolicy>> {
  const refuse = (why: string, cause: unknown): never => {
    throw new ProgramError(`loading audit policy file: ${why}`, { cause })
  }
  const source = await readFile(file).catch((cause: Error) =>
    refuse(`failed to read file path ${goQuote(file)}: ${fileErrorText(file, cause)}`, cause),
  )
  try {
    return parseAuditPolicy(source, (message) => log.info(message))
  } catch (cause) {
    return refuse(`${(cause as Error).message}: from file ${file}`, cause)
  }
}

async function openSinks(flags: ApiServerFlags, tools: AuditTools, reportLoss: ReportLoss): Promise<Sink[]> {
  const sinks: Sink[] = []
  if (flags['audit-log-path'] !== '') {
    const writer = await openLog(flags, tools)
    const log = createLogSink(writer, flags['audit-log-format'] as LogFormat, reportLoss)
    sinks.push(wrap(log, sinkValues('log', flags), { ...tools, reportLoss, isConcurrent: false }))
  }
  if (flags['audit-webhook-config-file'] !== '') {
    const webhook = await openWebhook(flags, tools, reportLoss)
    sinks.push(wrap(webhook, sinkValues('webhook', flags), { ...tools, reportLoss, isConcurrent: true }))
  }
  return sinks
}

function wrap(
  sink: Sink,
  values: AuditSinkValues,
  { clock, reportLoss, isConcurrent }: Pick<AuditTools, 'clock'> & { reportLoss: ReportLoss; isConcurrent: boolean },
): Sink {
  const throttle = { qps: values['batch-throttle-qps'], burst: values['batch-throttle-burst'] }
  const batch = {
    bufferSize: values['batch-buffer-size'],
    maxBatchSize: values['batch-max-size'],
    maxBatchWaitMs: values['batch-max-wait'],
    ...(values['batch-throttle-enable'] && { throttle }),
    isConcurrent,
  }
  const sent =
    values.mode === 'blocking-strict'
      ? sink
      : values.mode === 'blocking'
        ? ignoringErrors(sink)
        : createBufferedSink(sink, batch, { clock, reportLoss })
  if (!values['truncate-enabled']) return sent
  const limits = { maxEventBytes: values['truncate-max-event-size'], maxBatchBytes: values['truncate-max-batch-size'] }
  return createTruncatingSink(sent, limits, reportLoss)
}

const MEGABYTE = 1 << 20

async function openLog(flags: ApiServerFlags, { clock, log, stdout, resolve }: AuditTools): Promise<LineWriter> {
  const path = flags['audit-log-path']
  if (path === '-') return streamWriter(stdout)
  try {
    return await openRotatingFile(resolve(path), {
      clock,
      maxBytes: flags['audit-log-maxsize'] * MEGABYTE,
      maxAgeDays: flags['audit-log-maxage'],
      maxBackups: flags['audit-log-maxbackup'],
      compress: flags['audit-log-compress'],
      onError: (error) => log.error(error, 'Old audit logs were not tidied up'),
    })
  } catch (cause) {
    throw new ProgramError(`ensureLogFile: ${(cause as Error).message}`, { cause })
  }
}

function streamWriter(stream: Writable): LineWriter {
  return {
    write: (line) =>
      new Promise((done, failed) => {
        stream.write(Buffer.from(line, 'latin1'), (error) => (error == null ? done() : failed(error)))
      }),
    close: () => Promise.resolve(),
  }
}

const POST_TIMEOUT_MS = 30_000
/** Whatever a webhook answers is not read. */
const MAX_ANSWER_BYTES = 1 << 20

async function openWebhook(
  flags: ApiServerFlags,
  { clock, random, readFile }: AuditTools,
  reportLoss: ReportLoss,
): Promise<Sink> {
  const { url, tls, headers } = await readWebhookConfig(flags['audit-webhook-config-file'], readFile)
  const client = createHttpClient({ clock, tls })
  const sent = { ...headers, 'content-type': 'application/json', accept: 'application/json' }
  const initial = flags['audit-webhook-initial-backoff']
  return createWebhookSink({
    clock,
    random,
    async post(body) {
      const response = await client.request({ method: 'POST', url, headers: sent, body, timeoutMs: POST_TIMEOUT_MS })
      const text = await response.text(MAX_ANSWER_BYTES)
      if (response.status < 200 || response.status >= 300) {
        throw new Error(`Webhook answered ${response.status}: ${text.slice(0, 256)}`)
      }
    },
    close: () => client.close(),
    // Upstream's two flags are one value, and the last given counts; only the new one is expected to be given.
    initialBackoffMs: initial === DEFAULT_BACKOFF_MS ? flags['audit-webhook-batch-initial-backoff'] : initial,
    reportLoss,
  })
}

const DEFAULT_BACKOFF_MS = 10_000
