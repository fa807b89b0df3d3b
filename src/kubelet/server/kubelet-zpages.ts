/** Serves the kubelet's /statusz, and /flagz if it was started with flags. */
import type { Clock } from '#lib/clock.ts'
import { readProcess } from '#lib/metrics/process.ts'
import type { Random } from '#lib/random.ts'
import { versionInfo } from '#model/version.ts'
import { createZPages, type ZPages } from '#model/zpages.ts'

export interface KubeletZPagesOptions {
  readonly clock: Clock
  readonly random: Random
  readonly isEnabled: (gate: string) => boolean
  readonly version?: Parameters<typeof versionInfo>[0]
  /** Flag values by name. Default: no /flagz. */
  readonly flags?: ReadonlyMap<string, string>
}

/** Paths that upstream lists: those that are not web services of its router. */
const PATHS = ['/configz', '/healthz', '/metrics']

export function kubeletZPages({ clock, random, isEnabled, version, flags }: KubeletZPagesOptions): ZPages {
  const { gitVersion, goVersion } = versionInfo(version)
  const hasFlags = flags !== undefined && isEnabled('ComponentFlagz')
  return createZPages({
    component: 'kubelet',
    clock,
    random,
    isEnabled: (gate) => (gate === 'ComponentFlagz' ? hasFlags : isEnabled(gate)),
    startedAtMs: readProcess(clock).startTimeSeconds() * 1000,
    version: { gitVersion, goVersion, emulated: gitVersion.replace(/^v(\d+\.\d+).*$/, '$1') },
    paths: () => (hasFlags ? [...PATHS, '/flagz'] : PATHS),
    flags: flags ?? new Map(),
  })
}
