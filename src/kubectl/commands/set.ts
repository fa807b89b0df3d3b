/** kubectl set: sets commonly changed fields of objects. */
import { type Command, defineGroup, row } from '../command.ts'

export const set: Command = defineGroup({
  name: 'set',
  long: 'Set specific fields of existing objects.',
  commands: [
    row('env', 'Set environment variables of a pod template', async () => (await import('../set/env.ts')).setEnv),
    row('image', 'Set the image of a pod template', async () => (await import('../set/image.ts')).setImage),
    row(
      'resources',
      'Set requests and limits of containers',
      async () => (await import('../set/resources.ts')).setResources,
    ),
    row('selector', 'Set the selector of a service', async () => (await import('../set/selector.ts')).setSelector),
    row(
      'serviceaccount',
      'Set the service account of a workload',
      async () => (await import('../set/serviceaccount.ts')).setServiceAccount,
      { aliases: ['sa'] },
    ),
    row(
      'subject',
      'Add users, groups and service accounts to a role binding',
      async () => (await import('../set/subject.ts')).setSubject,
    ),
  ],
})
