/** kubectl create cronjob: creates a CronJob from an image and a schedule. */
import { flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'

import type { Command } from '../command.ts'
import { beginning, defineGenerator } from './generator.ts'

export const cronjob: Command = defineGenerator({
  name: 'cronjob',
  aliases: ['cj'],
  use: "NAME --image=image --schedule='0/5 * * * ?' -- [COMMAND] [args...] [flags] [options]",
  long: 'Create a cron job.',
  failure: 'failed to create cronjob: ',
  flags: {
    image: flag(string, '', 'Image of the container.', { required: true }),
    schedule: flag(string, '', 'Schedule in cron format.', { required: true }),
    restart: flag(string, '', 'Restart policy of the pods: OnFailure or Never.'),
  },
  make(name, { args, flags }) {
    const command = args.slice(1)
    const restartPolicy = flags.restart === '' ? 'OnFailure' : flags.restart
    const container = { name, image: flags.image, ...(command.length > 0 && { command }), resources: {} }
    return {
      ...beginning('batch/v1', 'CronJob'),
      metadata: { name },
      spec: {
        schedule: flags.schedule,
        jobTemplate: {
          metadata: { name },
          spec: { template: { metadata: {}, spec: { containers: [container], restartPolicy } } },
        },
      },
      status: {},
    }
  },
})
