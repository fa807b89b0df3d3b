/** What /metrics shows besides requests: the process, the build, the gates that are on, and how much is stored. */
import type { Registry as ObjectRegistry } from '#apiserver/registry/registry.ts'
import type { Clock } from '#lib/clock.ts'
import { readProcess, registerLoopMetrics, registerProcessMetrics, watchLoopDelay } from '#lib/metrics-process.ts'
import { createRegistry, type Registry } from '#lib/metrics.ts'
import { groupResourceText } from '#meta/kind.ts'
import type { VersionInfo } from '#model/version.ts'

import { FEATURE_GATES } from './flags/gates.ts'

export interface ServerMetricsOptions {
  readonly clock: Clock
  readonly version: VersionInfo
  readonly isEnabled: (gate: string) => boolean
  /** Undefined until the server has one. */
  readonly objects: () => ObjectRegistry | undefined
}

export interface ServerMetrics extends Disposable {
  readonly registry: Registry
}

export function createServerMetrics(options: ServerMetricsOptions): ServerMetrics {
  const registry = createRegistry()
  const delay = watchLoopDelay()
  registerProcessMetrics(registry, readProcess(options.clock))
  registerLoopMetrics(registry, delay)
  registerBuild(registry, options.version)
  registerGates(registry, options.isEnabled)
  registerObjects(registry, options.objects)
  return { registry, [Symbol.dispose]: () => delay[Symbol.dispose]() }
}

function registerBuild(registry: Registry, version: VersionInfo): void {
  registry
    .gauge({
      name: 'kubernetes_build_info',
      help: 'Always 1; the labels say which version this is.',
      stability: 'ALPHA',
      labels: [
        'major',
        'minor',
        'git_version',
        'git_commit',
        'git_tree_state',
        'build_date',
        'go_version',
        'compiler',
        'platform',
      ],
    })
    .labels(
      version.major,
      version.minor,
      version.gitVersion,
      version.gitCommit,
      version.gitTreeState,
      version.buildDate,
      version.goVersion,
      version.compiler,
      version.platform,
    )
    .set(1)
}

function registerGates(registry: Registry, isEnabled: (gate: string) => boolean): void {
  const gauge = registry.gauge({
    name: 'kubernetes_feature_enabled',
    help: 'Whether a feature gate is on, by name and maturity.',
    stability: 'BETA',
    labels: ['name', 'stage'],
  })
  for (const [name, { maturity }] of Object.entries(FEATURE_GATES)) {
    gauge.labels(name, maturity === 'GA' ? '' : maturity).set(isEnabled(name) ? 1 : 0)
  }
}

function registerObjects(registry: Registry, objects: () => ObjectRegistry | undefined): void {
  registry.callback({
    type: 'gauge',
    name: 'apiserver_storage_objects',
    help: 'Objects stored, by resource.',
    stability: 'STABLE',
    labels: ['resource'],
    collect(emit) {
      const seen = new Set<object>()
      for (const { resource, store } of objects()?.served() ?? []) {
        // A store serves several versions, and is counted once.
        if (seen.has(store) || !store.collection.isLoaded) continue
        seen.add(store)
        const { group, plural } = resource.kind
        emit(store.collection.size, groupResourceText({ group, resource: plural }))
      }
    },
  })
}
