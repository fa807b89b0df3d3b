/** kubectl create priorityclass: creates a PriorityClass with a value. */
import { flag } from '#lib/flags/flags.ts'
import { bool, int32, string } from '#lib/flags/kinds.ts'

import type { Command } from '../command.ts'
import { beginning, defineGenerator } from './generator.ts'

export const priorityclass: Command = defineGenerator({
  name: 'priorityclass',
  aliases: ['pc'],
  use: 'NAME --value=VALUE --global-default=BOOL [--dry-run=server|client|none] [options]',
  long: 'Create a priority class.',
  failure: 'failed to create priorityclass: ',
  flags: {
    value: flag(int32, 0, 'Priority of its pods.'),
    'global-default': flag(bool, false, 'Use this class for pods without a priority class.'),
    description: flag(string, '', 'Guideline for the use of the class.'),
    'preemption-policy': flag(string, 'PreemptLowerPriority', 'Preemption policy of its pods.'),
  },
  make(name, { flags }) {
    const { value, description } = flags
    return {
      ...beginning('scheduling.k8s.io/v1', 'PriorityClass'),
      metadata: { name },
      value,
      ...(flags['global-default'] && { globalDefault: true }),
      ...(description !== '' && { description }),
      preemptionPolicy: flags['preemption-policy'],
    }
  },
})
