/** The admission chain: runs all mutating plugins in order, then all validating plugins. */
import type { Admission, Attributes } from '#apiserver/registry/admission.ts'
import { type Clock, realClock } from '#lib/clock.ts'
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'

import { type AdmissionMeter, type AdmissionStep, createAdmissionMetrics } from './metrics.ts'
import { type AdmissionPlugin, concerns, Rounds } from './plugin.ts'

export interface ChainOptions {
  /** In mutating order. */
  readonly mutating: readonly AdmissionPlugin[]
  /** In validating order, which differs: quota must count only admitted objects. */
  readonly validating: readonly AdmissionPlugin[]
  readonly metrics?: ServerMeters | undefined
  readonly clock?: Clock
}

export function createChain({ mutating, validating, metrics, clock = realClock }: ChainOptions): Admission {
  const meters = metrics ?? createServerMeters()
  const admit = createAdmissionMetrics(meters, clock, 'admit')
  const validate = createAdmissionMetrics(meters, clock, 'validate')
  const changing = choosing(mutating)
  const judging = choosing(validating)
  return {
    mutate(attributes) {
      const plugins = changing(attributes)
      const rounds = new Rounds()
      const question = (plugin: AdmissionPlugin): void | Promise<void> => plugin.mutate?.(attributes, rounds)
      return measured(admit, attributes, (step) => {
        const again = (): void | Promise<void> => {
          if (!rounds.isRequested) return undefined
          rounds.isSecond = true
          return ask(plugins, step, question)
        }
        const first = ask(plugins, step, question)
        return first === undefined ? again() : first.then(again)
      })
    },
    validate(attributes) {
      const plugins = judging(attributes)
      return measured(validate, attributes, (step) => ask(plugins, step, (plugin) => plugin.validate?.(attributes)))
    },
  }
}

/** The plugins that handle a write: few of all, and the same for all writes of a kind. */
function choosing(plugins: readonly AdmissionPlugin[]): (attributes: Attributes) => readonly AdmissionPlugin[] {
  const known = new WeakMap<Attributes['kind'], Map<string, readonly AdmissionPlugin[]>>()
  return (attributes) => {
    const { kind, operation, subresource } = attributes
    let ofKind = known.get(kind)
    if (ofKind === undefined) known.set(kind, (ofKind = new Map()))
    const id = subresource === '' ? operation : `${operation}/${subresource}`
    let chosen = ofKind.get(id)
    if (chosen === undefined) ofKind.set(id, (chosen = plugins.filter((plugin) => concerns(plugin, attributes))))
    return chosen
  }
}

/**
 * Plugins with a synchronous result need no promise and no turn of the event loop: most writes pass most plugins
 * untouched.
 */
function ask(
  plugins: readonly AdmissionPlugin[],
  step: AdmissionStep,
  question: (plugin: AdmissionPlugin) => void | Promise<void>,
  from = 0,
): void | Promise<void> {
  for (let at = from; at < plugins.length; at++) {
    const plugin = plugins[at] as AdmissionPlugin
    step.asking(plugin)
    const answer = question(plugin)
    if (answer !== undefined) {
      return answer.then(() => {
        step.admitted()
        return ask(plugins, step, question, at + 1)
      })
    }
    step.admitted()
  }
  return undefined
}

function measured(
  meter: AdmissionMeter,
  { operation }: Attributes,
  work: (step: AdmissionStep) => void | Promise<void>,
): void | Promise<void> {
  const step = meter.begin(operation)
  const refused = (error: unknown): never => {
    step.rejected()
    throw error
  }
  try {
    const working = work(step)
    if (working !== undefined) return working.then(() => step.end(), refused)
  } catch (error) {
    return refused(error)
  }
  return step.end()
}
