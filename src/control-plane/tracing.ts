/** Starts tracing if the settings enable it. Its modules are loaded only then. */

import { identityOf } from '#apiserver/bootstrap/identity-lease.ts'
import { createRequestTracing } from '#apiserver/filters/tracing.ts'
import type { TraceRequest } from '#component/requests/request-filters.ts'
import { goQuote } from '#lib/go/text.ts'
import { createSpanExporter } from '#lib/otlp/exporter.ts'
import { ProgramError } from '#lib/program.ts'
import { createTracer } from '#lib/tracing/tracer.ts'
import { fileErrorText } from '#meta/config-kind.ts'

import { parseTracingConfig, type TracingConfig } from './config/tracing-config.ts'
import type { Environment } from './environment.ts'

/** Throws ProgramError for an unusable configuration. */
export async function openTracing(environment: Environment): Promise<TraceRequest> {
  const { clock, random, host, log, closing } = environment
  const { target, samplingRatePerMillion } = await loadConfig(environment)
  const exporter = createSpanExporter({
    clock,
    random,
    target,
    resource: { 'service.instance.id': identityOf(host), 'service.name': 'apiserver' },
    onError: (error) => log.error(error, 'Failed to export spans'),
  })
  closing.defer(() => exporter.close())
  const tracer = createTracer({ clock, random, samplingRatePerMillion, take: (span) => exporter.take(span) })
  return createRequestTracing(tracer, clock)
}

async function loadConfig({ settings, isEnabled, readFile }: Environment): Promise<TracingConfig> {
  const file = settings['tracing-config-file']
  if (!isEnabled('APIServerTracing')) {
    throw new ProgramError('APIServerTracing feature is not enabled, but tracing config file was provided')
  }
  let text
  try {
    text = await readFile(file)
  } catch (cause) {
    const why = `unable to read tracing configuration from ${goQuote(file)}: ${fileErrorText(file, cause as Error)}`
    throw new ProgramError(`failed to read tracing config: ${why}`, { cause })
  }
  try {
    return parseTracingConfig(text)
  } catch (cause) {
    throw new ProgramError((cause as Error).message, { cause })
  }
}
