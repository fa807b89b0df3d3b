/** kubectl create job: creates a Job from an image or from a CronJob. */
import { flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'

import type { Command, Invocation } from '../command.ts'
import { KubectlError } from '../errors.ts'
import type { AnyObject } from '../session/rest.ts'
import { beginning, defineGenerator } from './generator.ts'

export const job: Command = defineGenerator({
  name: 'job',
  use: 'NAME --image=image [--from=cronjob/name] -- [COMMAND] [args...] [options]',
  long: 'Create a job from an image or from a cron job.',
  failure: 'failed to create job: ',
  flags: {
    image: flag(string, '', 'Image of the container.'),
    from: flag(string, '', 'Cron job to create the job from.'),
  },
  async make(name, invocation) {
    const { args, flags } = invocation
    const command = args.slice(1)
    const { image, from } = flags
    if ((image === '') === (from === '')) {
      throw new KubectlError('either --image or --from must be specified')
    }
    if (from !== '' && command.length > 0) throw new KubectlError('cannot specify --from and command')
    if (from !== '') return fromCronJob(name, from, invocation as unknown as Invocation)
    const container = { name, image, ...(command.length > 0 && { command }), resources: {} }
    return {
      ...beginning('batch/v1', 'Job'),
      metadata: { name },
      spec: { template: { metadata: {}, spec: { containers: [container], restartPolicy: 'Never' } } },
      status: {},
    }
  },
})

interface CronJob extends AnyObject {
  spec: { jobTemplate: { metadata?: { labels?: object; annotations?: object }; spec: object } }
}

async function fromCronJob(name: string, from: string, { session }: Invocation): Promise<AnyObject> {
  const { namespace } = await session.namespace()
  const [type = '', of] = from.includes('/') ? from.split('/') : ['cronjob', from]
  const kind = await (await session.mapper()).named(type)
  if (kind.kind !== 'CronJob') throw new KubectlError(`from must be an existing cronjob`)
  const rest = await session.rest()
  const cronJob = (await rest.get({ kind, namespace, name: of ?? '' })) as CronJob
  const { jobTemplate } = cronJob.spec
  const { labels, annotations } = jobTemplate.metadata ?? {}
  const owner = {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    name: cronJob.metadata.name ?? '',
    uid: cronJob.metadata.uid ?? '',
    controller: true,
  }
  return {
    ...beginning('batch/v1', 'Job'),
    metadata: {
      name,
      ...(labels !== undefined && { labels: labels as Record<string, string> }),
      annotations: { 'cronjob.kubernetes.io/instantiate': 'manual', ...annotations },
      ownerReferences: [owner],
    },
    spec: jobTemplate.spec,
    status: {},
  }
}
