/** Lists the KubeletConfiguration fields whose values this kubelet rejects or ignores. Pure. */
import type { SupportFindings } from '#lib/flags/flag-support.ts'
import { goJson } from '#lib/go/text.ts'
import { valueAt } from '#meta/config-rows.ts'

import { CONFIGURATION, type KubeletConfiguration } from './configuration.ts'
import { withDefaults } from './defaults.ts'

/** The supported options of the static CPU manager policy. */
const CPU_OPTIONS: ReadonlySet<string> = new Set(['full-pcpus-only', 'strict-cpu-reservation'])

const NO_OPTION = 'CPUs are packed by cores'

/** The unsupported and ineffective fields of a configuration. */
export function unsupportedIn(config: KubeletConfiguration): SupportFindings {
  const plain = withDefaults({})
  const jsonIn = (values: object, path: string): string => goJson(valueAt(values, path) ?? null)
  const changed = CONFIGURATION.options
    .filter(({ path }) => jsonIn(config, path) !== jsonIn(plain, path))
    .sort((a, b) => (a.path < b.path ? -1 : 1))
  const errors = changed.flatMap(({ path, unsupported: why }) =>
    why === undefined ? [] : [`${path} ${jsonIn(config, path)} is not supported: ${why}`],
  )
  const options = Object.keys(config.cpuManagerPolicyOptions ?? {}).filter((name) => !CPU_OPTIONS.has(name))
  errors.push(...options.map((name) => `cpuManagerPolicyOptions "${name}" is not supported: ${NO_OPTION}`))
  return {
    errors,
    notes: changed.flatMap(({ path, idle: why }) => (why === undefined ? [] : [`${path} has no effect: ${why}`])),
  }
}
