/** kubectl attach: our input and output joined to those of what runs in a container. */
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, string } from '#lib/flags/kinds.ts'

import { type Command, defineCommand } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { attachTo, DETACH_KEYS } from '../streams/attaching.ts'
import { attachablePod, checkTimeout, readNamed, theOnly } from '../streams/target-pod.ts'

export const attach: Command = defineCommand({
  name: 'attach',
  use: '(POD | TYPE/NAME) -c CONTAINER [options]',
  long: 'Attach to what runs in a container.',
  examples: `# Output of the pod mypod, of the container that it says or its first
kubectl attach mypod

# A raw terminal for what runs in the container ruby of the pod mypod
kubectl attach mypod -c ruby -i -t

# Output of the first pod of a replica set
kubectl attach rs/nginx`,
  flags: {
    container: flag(string, '', 'Name of the container. Without it the one that the pod says, or its first.', {
      shorthand: 'c',
    }),
    'detach-keys': flag(string, DETACH_KEYS, 'Keys that end the session and leave the container alone'),
    'pod-running-timeout': flag(
      duration,
      60_000,
      'How long to wait until there is a pod (5s, 2m, 3h). More than zero.',
    ),
    quiet: flag(bool, false, 'Print nothing but what the container prints', { shorthand: 'q' }),
    stdin: flag(bool, false, 'Pass stdin to the container', { shorthand: 'i' }),
    tty: flag(bool, false, 'Stdin is a TTY', { shorthand: 't' }),
  },
  async run(invocation) {
    const { args, flags, session, clock, path } = invocation
    await session.namespace()
    checkTimeout(invocation, flags['pod-running-timeout'])
    if (args.length === 0) throw new KubectlError('at least 1 argument is required for attach')
    if (args.length > 2) {
      throw new KubectlError(
        `expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw ${args.length}: [${args.join(' ')}]`,
      )
    }
    const [type, name] = args.length === 2 ? (args as [string, string]) : ['pods', args[0] as string]
    const named = await readNamed(invocation, { names: [name], type })
    const one = theOnly(named, 'cannot attach to multiple objects at a time')
    const rest = await session.rest()
    const pod = await attachablePod(one, { rest, clock, timeoutMs: flags['pod-running-timeout'] })
    const { phase = '' } = pod.status ?? {}
    if (phase === 'Succeeded' || phase === 'Failed') {
      throw new KubectlError(`cannot attach a container in a completed pod; current phase is ${phase}`)
    }
    await attachTo(invocation, pod, { ...flags, keys: flags['detach-keys'], commandPath: path })
  },
})
