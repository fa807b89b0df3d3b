/** kubectl attach: connects standard input and output to the main process of a container. */
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, string } from '#lib/flags/kinds.ts'

import { type Command, defineCommand } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { attachTo, DETACH_KEYS } from '../streams/attaching.ts'
import { attachablePod, checkTimeout, readNamed, theOnly } from '../streams/target-pod.ts'

export const attach: Command = defineCommand({
  name: 'attach',
  use: '(POD | TYPE/NAME) -c CONTAINER [options]',
  long: 'Attach to a process that is already running in a container.',
  examples: `# Get output from the default container of pod mypod
kubectl attach mypod

# Attach with a raw terminal to container ruby of pod mypod
kubectl attach mypod -c ruby -i -t

# Get output from the first pod of a replica set
kubectl attach rs/nginx`,
  flags: {
    container: flag(
      string,
      '',
      "Name of the container. If omitted, use the pod's default container or its first one.",
      {
        shorthand: 'c',
      },
    ),
    'detach-keys': flag(string, DETACH_KEYS, 'Key sequence that ends the session and leaves the container running'),
    'pod-running-timeout': flag(
      duration,
      60_000,
      'Time to wait for a pod to run (5s, 2m, 3h). Must be greater than zero.',
    ),
    quiet: flag(bool, false, 'Print only the output of the container', { shorthand: 'q' }),
    stdin: flag(bool, false, 'Pass stdin to the container', { shorthand: 'i' }),
    tty: flag(bool, false, 'Stdin is a TTY', { shorthand: 't' }),
  },
  completes: 'pods',
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
