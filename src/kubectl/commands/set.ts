/** kubectl set: fields of objects that people change often. */
import { type Command, defineCommand } from '../command.ts'
import { requireSubcommand } from '../subcommand.ts'

export const set: Command = defineCommand({
  name: 'set',
  use: 'SUBCOMMAND [options]',
  long: 'Set particular fields of objects that are there.',
  flags: {},
  commands: [
    {
      name: 'env',
      short: 'Set environment variables of a pod template',
      load: async () => (await import('../set/env.ts')).setEnv,
    },
    {
      name: 'image',
      short: 'Set the image of a pod template',
      load: async () => (await import('../set/image.ts')).setImage,
    },
    {
      name: 'resources',
      short: 'Set what containers ask for and are limited to',
      load: async () => (await import('../set/resources.ts')).setResources,
    },
    {
      name: 'selector',
      short: 'Set the selector of a service',
      load: async () => (await import('../set/selector.ts')).setSelector,
    },
    {
      name: 'serviceaccount',
      aliases: ['sa'],
      short: 'Set the service account of a workload',
      load: async () => (await import('../set/serviceaccount.ts')).setServiceAccount,
    },
    {
      name: 'subject',
      short: 'Add users, groups and service accounts to a role binding',
      load: async () => (await import('../set/subject.ts')).setSubject,
    },
  ],
  run: requireSubcommand,
})
