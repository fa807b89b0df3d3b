/** Tracing, where the settings ask for it: what is loaded here is loaded for nobody else. */
import { hostname } from 'node:os'

import { identityOf } from '#apiserver/bootstrap/identity-lease.ts'
import { createRequestTracing, type TraceRequest } from '#apiserver/filters/tracing.ts'
import { goQuote } from '#lib/go-text.ts'
import { ProgramError } from '#lib/program.ts'
import { createSpanExporter } from '#lib/tracing/exporter.ts'
import { createTracer } from '#lib/tracing/tracer.ts'
import { fileErrorText } from '#meta/config-kind.ts'

import { parseTracingConfig, type TracingConfig } from './config/tracing-config.ts'
import type { Site } from './site.ts'

/** Throws ProgramError for a configuration that cannot be used. */
export async function openTracing(site: Site): Promise<TraceRequest> {
  const { clock, random, log, closing } = site
  const { target, samplingRatePerMillion } = await loadConfig(site)
  const exporter = createSpanExporter({
    clock,
    random,
    target,
    resource: { 'service.instance.id': identityOf(hostname()), 'service.name': 'apiserver' },
    onError: (error) => log.error(error, 'Spans were lost'),
  })
  closing.defer(() => exporter.close())
  const tracer = createTracer({ clock, random, samplingRatePerMillion, take: (span) => exporter.take(span) })
  return createRequestTracing(tracer, clock)
}

async function loadConfig({ settings, isEnabled, readFile }: Site): Promise<TracingConfig> {
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
