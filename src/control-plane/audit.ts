/** Builds auditing from the flags: reads the policy, opens the log and the webhook, and combines them. */
import { resolve } from 'node:path'
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
import { goQuote } from '#lib/go/text.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { ProgramError } from '#lib/program.ts'
import { fileErrorText } from '#meta/config-kind.ts'

import { parseAuditPolicy } from './config/audit-policy.ts'
import type { Environment } from './environment.ts'
import type { AuditSinkName, AuditSinkValues } from './flags/audit-flags.ts'
import { sinkValues } from './flags/audit-plan.ts'
import type { Settings } from './flags/flags.ts'
import { readWebhookConfig } from './review-client.ts'

type Tools = Pick<Environment, 'settings' | 'clock' | 'random' | 'log' | 'metrics' | 'stdout' | 'readFile' | 'cwd'>

/** Undefined if auditing is disabled. Throws ProgramError for unusable files. */
export async function openAudit(tools: Tools & Pick<Environment, 'closing'>): Promise<Audit | undefined> {
  const flags = tools.settings
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
  const audit = createAudit({
    clock: tools.clock,
    evaluate: createPolicyEvaluator(policy),
    sink,
    metrics,
    schemaFor,
  })
  // Closed after the server, whose last requests are recorded too.
  tools.closing.defer(() => audit.close())
  return audit
}

function usedSinks(flags: Settings): AuditSinkName[] {
  return [
    ...(flags['audit-log-path'] === '' ? [] : (['log'] as const)),
    ...(flags['audit-webhook-config-file'] === '' ? [] : (['webhook'] as const)),
  ]
}

async function readPolicy(file: string, { readFile, log }: Tools): Promise<ReturnType<typeof parseAuditPolicy>> {
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

async function openSinks(flags: Settings, tools: Tools, reportLoss: ReportLoss): Promise<Sink[]> {
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
  { clock, reportLoss, isConcurrent }: Pick<Tools, 'clock'> & { reportLoss: ReportLoss; isConcurrent: boolean },
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

async function openLog(flags: Settings, { clock, log, stdout, cwd }: Tools): Promise<LineWriter> {
  const path = flags['audit-log-path']
  if (path === '-') return streamWriter(stdout)
  try {
    return await openRotatingFile(resolve(cwd, path), {
      clock,
      maxBytes: flags['audit-log-maxsize'] * MEGABYTE,
      maxAgeDays: flags['audit-log-maxage'],
      maxBackups: flags['audit-log-maxbackup'],
      compress: flags['audit-log-compress'],
      onError: (error) => log.error(error, 'Failed to remove old audit logs'),
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
/** The body of a webhook's response is ignored. */
const MAX_ANSWER_BYTES = 1 << 20

async function openWebhook(flags: Settings, { clock, random, readFile }: Tools, reportLoss: ReportLoss): Promise<Sink> {
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
    // Upstream's two flags set one value, and the last given counts; only the new one is expected.
    initialBackoffMs: initial === DEFAULT_BACKOFF_MS ? flags['audit-webhook-batch-initial-backoff'] : initial,
    reportLoss,
  })
}

const DEFAULT_BACKOFF_MS = 10_000
