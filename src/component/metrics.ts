/** Metrics of the process, the build and the enabled feature gates. */
import type { Clock } from '#lib/clock.ts'
import { createRegistry } from '#lib/metrics/metrics.ts'
import { readProcess, registerLoopMetrics, registerProcessMetrics, watchLoopDelay } from '#lib/metrics/process.ts'
import { type ProgramContext, ProgramError } from '#lib/program.ts'
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'
import { createMetricRules, type MetricSettings, registerMetaMetrics } from '#model/metrics/rules.ts'
import type { VersionInfo } from '#model/version.ts'

import { FEATURE_GATES } from './flags/gates.ts'
import { type MetricsValues, parseAllowedLabels } from './flags/metrics-flags.ts'

export interface ServerMetricsOptions {
  readonly clock: Clock
  readonly version: VersionInfo
  readonly isEnabled: (gate: string) => boolean
  /** The metric settings of users. */
  readonly settings: MetricSettings
}

export interface ServerMetrics extends Disposable {
  readonly meters: ServerMeters
}

export function createServerMetrics({ clock, version, isEnabled, settings }: ServerMetricsOptions): ServerMetrics {
  const rules = createMetricRules(settings)
  const registry = createRegistry(rules)
  const meters = createServerMeters(registry)
  const delay = watchLoopDelay()
  registerProcessMetrics(registry, readProcess(clock))
  registerLoopMetrics(registry, delay)
  registerMetaMetrics(meters, rules)
  registerBuild(meters, version)
  registerGates(meters, isEnabled)
  return { meters, [Symbol.dispose]: () => delay[Symbol.dispose]() }
}

function registerBuild(meters: ServerMeters, version: VersionInfo): void {
  const { major, minor, gitVersion, gitCommit, gitTreeState, buildDate, goVersion, compiler, platform } = version
  const about = [gitVersion, gitCommit, gitTreeState, buildDate, goVersion, compiler, platform] as const
  meters
    .family('kubernetes_build_info')
    .labels(major, minor, ...about)
    .set(1)
  const { emulationMajor, emulationMinor, minCompatibilityMajor, minCompatibilityMinor } = version
  const emulated = `${emulationMajor}.${emulationMinor}`
  const compatible = `${minCompatibilityMajor}.${minCompatibilityMinor}`
  meters.family('version_info').labels('kube', `${major}.${minor}`, emulated, compatible).set(1)
}

function registerGates(meters: ServerMeters, isEnabled: (gate: string) => boolean): void {
  const gauge = meters.family('kubernetes_feature_enabled')
  for (const [name, { maturity }] of Object.entries(FEATURE_GATES)) {
    gauge.labels(name, maturity === 'GA' ? '' : maturity).set(isEnabled(name) ? 1 : 0)
  }
}

/** The settings of the flags. Throws ProgramError for an unusable manifest. */
export async function loadMetricSettings(
  flags: MetricsValues,
  readFile: ProgramContext['readFile'],
): Promise<MetricSettings> {
  const manifest = flags['allow-metric-labels-manifest']
  const settings = { disabled: flags['disabled-metrics'], showsHidden: flags['show-hidden-metrics-for-version'] !== '' }
  if (manifest === '') return { ...settings, allowed: flags['allow-metric-labels'] }
  try {
    return { ...settings, allowed: parseAllowedLabels(await readFile(manifest)) }
  } catch (cause) {
    throw new ProgramError(`--allow-metric-labels-manifest: ${(cause as Error).message}`, { cause })
  }
}
