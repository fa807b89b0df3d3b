/** kubectl create deployment: creates a Deployment from images. */
import { flag } from '#lib/flags/flags.ts'
import { int32 } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'

import type { Command } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { beginning, defineGenerator } from './generator.ts'

export const deployment: Command = defineGenerator({
  name: 'deployment',
  aliases: ['deploy'],
  use: 'NAME --image=image -- [COMMAND] [args...] [options]',
  long: 'Create a deployment.',
  failure: 'failed to create deployment: ',
  flags: {
    image: flag(strings, [], 'Images to run, one container for each.', { required: true }),
    port: flag(int32, -1, 'Port that the container exposes.'),
    replicas: flag(int32, 1, 'Number of replicas.', { shorthand: 'r' }),
  },
  make(name, { args, flags }) {
    const command = args.slice(1)
    const { image: images, port, replicas } = flags
    if (images.length > 1 && command.length > 0) {
      throw new KubectlError('cannot specify multiple --image options and command')
    }
    const labels = { app: name }
    const containers = images.map((image, at) => ({
      name: containerName(image),
      image,
      ...(command.length > 0 && { command }),
      ...(at === 0 && port >= 0 && { ports: [{ containerPort: port }] }),
      resources: {},
    }))
    return {
      ...beginning('apps/v1', 'Deployment'),
      metadata: { name, labels },
      spec: {
        replicas,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers } },
        strategy: {},
      },
      status: {},
    }
  },
})

/** The last part of an image name, without tag and digest, reduced to a valid name. */
export function containerName(image: string): string {
  const last = image.split('/').at(-1) ?? ''
  const bare = (last.includes(':') ? last.split(':')[0] : last.split('@')[0]) ?? ''
  return bare
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]/g, '-')
    .replaceAll(/^-+|-+$/g, '')
}
