/** The chain: plugins asked in order, first all that change, then, once nothing changes any more, all that refuse. */
import type { Admission, Attributes } from '#apiserver/registry/admission.ts'
import { type Clock, realClock } from '#lib/clock.ts'
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'

import { type AdmissionMeter, type AdmissionStep, createAdmissionMetrics } from './metrics.ts'
import { type AdmissionPlugin, concerns, Rounds } from './plugin.ts'

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
    mutate: (attributes) =>
      measured(admit, attributes, async (step) => {
        const rounds = new Rounds()
        const question = (plugin: AdmissionPlugin): void | Promise<void> => plugin.mutate?.(attributes, rounds)
        await ask(mutating, attributes, step, question)
        if (!rounds.isAsked) return
        rounds.isSecond = true
        await ask(mutating, attributes, step, question)
      }),
    validate: (attributes) =>
      measured(validate, attributes, (step) =>
        ask(validating, attributes, step, (plugin) => plugin.validate?.(attributes)),
      ),
  }
}

/** Plugins that answer at once cost no turn of the event loop: most writes pass most plugins untouched. */
async function ask(
  plugins: readonly AdmissionPlugin[],
  attributes: Attributes,
  step: AdmissionStep,
  question: (plugin: AdmissionPlugin) => void | Promise<void>,
): Promise<void> {
  for (const plugin of plugins) {
    if (!concerns(plugin, attributes)) continue
    step.asking(plugin)
    const answer = question(plugin)
    if (answer !== undefined) await answer
    step.admitted()
  }
}

async function measured(
  meter: AdmissionMeter,
  { operation }: Attributes,
  work: (step: AdmissionStep) => Promise<void>,
): Promise<void> {
  const step = meter.begin(operation)
  try {
    await work(step)
    step.end()
  } catch (error) {
    step.rejected()
    throw error
  }
}
