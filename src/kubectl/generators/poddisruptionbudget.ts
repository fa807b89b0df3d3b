/** kubectl create poddisruptionbudget: creates a budget for selected pods. */
import { flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { type LabelSelectorRequirement, parseLabelSelector } from '#meta/label-selector.ts'

import type { Command } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import { beginning, defineGenerator } from './generator.ts'

interface BudgetFlags {
  readonly selector: string
  readonly 'min-available': string
  readonly 'max-unavailable': string
}

export const poddisruptionbudget: Command = defineGenerator({
  name: 'poddisruptionbudget',
  aliases: ['pdb'],
  use: 'NAME --selector=SELECTOR --min-available=N [--dry-run=server|client|none] [options]',
  long: 'Create a pod disruption budget, which limits how many of the selected pods may be unavailable.',
  failure: 'failed to create poddisruptionbudgets: ',
  flags: {
    'min-available': flag(string, '', 'Minimum number or percentage of pods that must be available.'),
    'max-unavailable': flag(string, '', 'Maximum number or percentage of pods that may be unavailable.'),
    selector: flag(string, '', 'Label selector of the pods.'),
  },
  make(name, { flags }) {
    check(flags)
    const { 'min-available': least, 'max-unavailable': most } = flags
    return {
      ...beginning('policy/v1', 'PodDisruptionBudget'),
      metadata: { name },
      spec: {
        ...(least !== '' && { minAvailable: amount(least) }),
        selector: selectorOf(flags.selector),
        ...(most !== '' && { maxUnavailable: amount(most) }),
      },
      status: { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 },
    }
  },
})

/** Throws KubectlError. */
function check({ selector, 'min-available': least, 'max-unavailable': most }: BudgetFlags): void {
  const isAmount = (text: string): boolean => text === '' || /^\d+%?$/.test(text)
  const problems: [isSo: boolean, text: string][] = [
    [selector === '', 'a selector must be specified'],
    [least === '' && most === '', 'one of min-available or max-unavailable must be specified'],
    [least !== '' && most !== '', 'min-available and max-unavailable cannot be both specified'],
    [!isAmount(least), 'invalid format specified for min-available'],
    [!isAmount(most), 'invalid format specified for max-unavailable'],
  ]
  const problem = problems.find(([isSo]) => isSo)
  if (problem !== undefined) throw new KubectlError(problem[1])
}

function amount(text: string): number | string {
  return text.endsWith('%') ? text : Number(text)
}

/** An empty list of values is omitted. */
function written({ values = [], ...rest }: LabelSelectorRequirement): object {
  return values.length === 0 ? rest : { ...rest, values }
}

function selectorOf(text: string): object {
  try {
    const { matchLabels = {}, matchExpressions = [] } = parseLabelSelector(text)
    return {
      ...(Object.keys(matchLabels).length > 0 && { matchLabels }),
      ...(matchExpressions.length > 0 && { matchExpressions: matchExpressions.map(written) }),
    }
  } catch (cause) {
    throw new KubectlError(asError(cause).message, { cause })
  }
}
