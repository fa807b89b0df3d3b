/** kubectl exec: runs a command in a container with local input, output and terminal, and returns its exit code. */
import type { Pod } from '#apis/core/v1.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'

import { type Command, defineCommand, type Invocation, usageError } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { chosenContainer, findContainer, noSuchContainer } from '../streams/containers.ts'
import { planStreams, streamTo } from '../streams/remote-session.ts'
import { attachablePod, checkTimeout, readNamed, theOnly } from '../streams/target-pod.ts'

const FLAGS = {
  container: flag(string, '', "Name of the container. If omitted, use the pod's default container or its first one.", {
    shorthand: 'c',
  }),
  filename: flag(strings, [], 'to use to exec into the resource', { shorthand: 'f' }),
  'pod-running-timeout': flag(
    duration,
    60_000,
    'Time to wait for a pod to run (5s, 2m, 3h). Must be greater than zero.',
  ),
  quiet: flag(bool, false, 'Print only the output of the command', { shorthand: 'q' }),
  stdin: flag(bool, false, 'Pass stdin to the container', { shorthand: 'i' }),
  tty: flag(bool, false, 'Stdin is a TTY', { shorthand: 't' }),
}

type ExecInvocation = Invocation<typeof FLAGS>

export const exec: Command = defineCommand({
  name: 'exec',
  use: '(POD | TYPE/NAME) [-c CONTAINER] [flags] -- COMMAND [args...] [options]',
  long: 'Run a command in a container.',
  examples: `# Print the date in the default container of pod mypod
kubectl exec mypod -- date

# Print the date in container ruby of pod mypod
kubectl exec mypod -c ruby -- date

# Run a shell in container ruby of pod mypod
kubectl exec mypod -c ruby -i -t -- bash -il

# Print the date in the first pod of a deployment
kubectl exec deploy/mydeployment -- date`,
  flags: FLAGS,
  completes: 'pods',
  completesFlags: { container: 'containers' },
  async run(invocation) {
    const { flags, stderr } = invocation
    const { name, command } = wordsOf(invocation)
    checkTimeout(invocation, flags['pod-running-timeout'])
    await invocation.session.namespace()
    if (name === '' && flags.filename.length === 0) {
      throw new KubectlError('pod, type/name or --filename must be specified')
    }
    if (command.length === 0) throw new KubectlError('you must specify at least one command for the container')
    const pod = await podFor(invocation, name)
    const { phase = '' } = pod.status ?? {}
    if (phase === 'Succeeded' || phase === 'Failed') {
      throw new KubectlError(`cannot exec into a container in a completed pod; current phase is ${phase}`)
    }
    if (flags.container !== '' && findContainer(pod, flags.container) === undefined) {
      throw noSuchContainer(pod, flags.container)
    }
    const warn = (line: string): void => void (flags.quiet || stderr.write(line))
    const { container } = chosenContainer(pod, flags.container, warn)
    const { namespace = '', name: podName = '' } = pod.metadata
    const plan = planStreams(invocation, flags)
    const target = { namespace, pod: podName, container: container.name, subresource: 'exec', command } as const
    await streamTo(invocation, target, { plan })
  },
})

function wordsOf(invocation: ExecInvocation): { readonly name: string; readonly command: readonly string[] } {
  const { args, argsBeforeDash, flags } = invocation
  const name = argsBeforeDash === 0 ? '' : (args[0] ?? '')
  if (argsBeforeDash > -1) return { name, command: args.slice(argsBeforeDash) }
  if (args.length > 1 || (args.length > 0 && flags.filename.length > 0)) {
    throw usageError(invocation, 'exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead')
  }
  return { name, command: [] }
}

async function podFor(invocation: ExecInvocation, name: string): Promise<Pod> {
  const { flags, session, clock } = invocation
  const { filename } = flags
  const named = await readNamed(invocation, {
    names: name === '' ? [] : [name],
    ...(filename.length > 0 && { files: { filename } }),
  })
  const one = theOnly(named, 'cannot exec into multiple objects at a time')
  return attachablePod(one, { rest: await session.rest(), clock, timeoutMs: flags['pod-running-timeout'] })
}
