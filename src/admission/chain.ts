/** The chain: plugins asked in order, first all that change, then, once nothing changes any more, all that refuse. */
import type { Admission, Attributes } from '#apiserver/registry/admission.ts'
import { type Clock, realClock } from '#lib/clock.ts'
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'

import { type AdmissionMeter, createAdmissionMetrics } from './metrics.ts'
import { type AdmissionPlugin, concerns } from './plugin.ts'

export interface ChainOptions {
  /** In the order they mutate. */
  readonly mutating: readonly AdmissionPlugin[]
  /** In the order they validate: another one, because quota must count only what is let in. */
  readonly validating: readonly AdmissionPlugin[]
  readonly metrics?: ServerMeters | undefined
  readonly clock?: Clock
}

export function createChain({ mutating, validating, metrics, clock = realClock }: ChainOptions): Admission {
  const meters = metrics ?? createServerMeters()
  const admit = createAdmissionMetrics(meters, clock, 'admit')
  const validate = createAdmissionMetrics(meters, clock, 'validate')
  return {
    mutate: (attributes) => ask(mutating, attributes, admit, (plugin) => plugin.mutate?.(attributes)),
    validate: (attributes) => ask(validating, attributes, validate, (plugin) => plugin.validate?.(attributes)),
  }
}

/** Plugins that answer at once cost no turn of the event loop: most writes pass most plugins untouched. */
async function ask(
  plugins: readonly AdmissionPlugin[],
  attributes: Attributes,
  meter: AdmissionMeter,
  question: (plugin: AdmissionPlugin) => void | Promise<void>,
): Promise<void> {
  const { operation } = attributes
  const step = meter.begin(operation)
  try {
    for (const plugin of plugins) {
      if (!concerns(plugin, attributes)) continue
      step.asking(plugin)
      const answer = question(plugin)
      if (answer !== undefined) await answer
      step.admitted()
    }
    step.end()
  } catch (error) {
    step.rejected()
    throw error
  }
}
