/** Attaches to a container, for `attach`, `run` and `debug`. */
import type { Pod } from '#apis/core/v1.ts'

import { asError, KubectlError } from '../errors.ts'
import { chosenContainer, type FoundContainer } from './containers.ts'
import { planStreams, type StreamContext, streamTo } from './remote-session.ts'
import { detachKeys, untilKeys } from './terminal.ts'

export interface AttachOptions {
  readonly container: string
  readonly stdin: boolean
  readonly tty: boolean
  readonly quiet: boolean
  /** `ctrl-p,ctrl-q`. */
  readonly keys: string
  /** The command to resume the session: `kubectl attach`. */
  readonly commandPath: string
}

export async function attachTo(context: StreamContext, pod: Pod, attaching: AttachOptions): Promise<void> {
  const { stdout, stderr } = context
  const { quiet } = attaching
  const say = (line: string): void => void (quiet || stderr.write(line))
  let found: FoundContainer
  try {
    found = chosenContainer(pod, attaching.container, say)
  } catch (error) {
    throw new KubectlError(`cannot attach to the container: ${asError(error).message}`, { cause: error })
  }
  const { container, field } = found
  if (attaching.tty && container.tty !== true) {
    say(`error: Unable to use a TTY - container ${container.name} did not allocate one\n`)
  }
  // Without a TTY in the container, kubectl cannot use one.
  const plan = planStreams(context, { ...attaching, tty: container.tty === true })
  say(RECORDED)
  const { namespace = '', name = '' } = pod.metadata
  const target = { namespace, pod: name, container: container.name, subresource: 'attach' } as const
  const detaching = new AbortController()
  const input = plan.isRaw ? { input: untilKeys(context.stdin(), keysOf(attaching.keys), () => detaching.abort()) } : {}
  await streamTo(context, target, { plan, ...input, redraw: true, detached: detaching.signal })
  if (quiet || !plan.isRaw) return
  const again = `${attaching.commandPath} ${name} -c ${container.name} -n ${namespace} -i -t`
  stdout.write(
    field === 'ephemeralContainers'
      ? `Session ended, the ephemeral container will not be restarted but may be reattached using '${again}' if it is still running\n`
      : `Session ended, resume using '${again}' command\n`,
  )
}

const RECORDED = `All commands and output from this session will be recorded in container logs, including credentials and sensitive information passed through the command prompt.
If you don't see a command prompt, try pressing enter.
`

function keysOf(text: string): Buffer {
  try {
    return detachKeys(text || DETACH_KEYS)
  } catch (cause) {
    throw new KubectlError(`could not bind detach keys: ${asError(cause).message}`, { cause })
  }
}

export const DETACH_KEYS = 'ctrl-p,ctrl-q'
