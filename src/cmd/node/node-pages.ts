/** Serves the health and metrics of a supervisor on a port. */
import { type PagesOptions, servePages } from '#lib/http/pages.ts'
import { createRegistry, METRICS_CONTENT_TYPE } from '#lib/metrics/metrics.ts'
import { readProcess, registerProcessMetrics } from '#lib/metrics/process.ts'
import { declareNodeMetrics, type NodeStatusSnapshot } from '#supervisor/metrics.ts'
import { describeOutcome } from '#supervisor/outcome.ts'

/** Throws ProgramError. */
export async function serveNodePages(
  address: string,
  options: PagesOptions,
  seen: () => NodeStatusSnapshot,
): Promise<void> {
  const registry = createRegistry()
  registerProcessMetrics(registry, readProcess(options.clock))
  declareNodeMetrics(registry, seen)
  await servePages(address, options, {
    '/metrics': () => ({ type: METRICS_CONTENT_TYPE, body: registry.render() }),
    '/healthz': () => {
      const last = seen().supervisor?.last
      if (last === undefined || last.kind === 'ok') return { body: 'ok' }
      return { status: 503, body: describeOutcome(last) }
    },
  })
}
