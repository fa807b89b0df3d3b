/** The chain: plugins asked in order, first all that change, then, once nothing changes any more, all that refuse. */
import type { Admission, Attributes } from '#apiserver/registry/admission.ts'

import { type AdmissionPlugin, concerns } from './plugin.ts'

export interface ChainOptions {
  /** In the order they mutate. */
  readonly mutating: readonly AdmissionPlugin[]
  /** In the order they validate: another one, because quota must count only what is let in. */
  readonly validating: readonly AdmissionPlugin[]
}

export function createChain({ mutating, validating }: ChainOptions): Admission {
  return {
    mutate: (attributes) => ask(mutating, attributes, (plugin) => plugin.mutate?.(attributes)),
    validate: (attributes) => ask(validating, attributes, (plugin) => plugin.validate?.(attributes)),
  }
}

/** Plugins that answer at once cost no turn of the event loop: most writes pass most plugins untouched. */
async function ask(
  plugins: readonly AdmissionPlugin[],
  attributes: Attributes,
  question: (plugin: AdmissionPlugin) => void | Promise<void>,
): Promise<void> {
  for (const plugin of plugins) {
    if (!concerns(plugin, attributes)) continue
    const answer = question(plugin)
    if (answer !== undefined) await answer
  }
}
