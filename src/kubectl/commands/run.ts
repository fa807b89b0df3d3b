/** kubectl run: runs an image in a pod, optionally with a service and an attached session. */
import type { Pod } from '#apis/core/v1.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, int, string } from '#lib/flags/kinds.ts'
import { stringArray } from '#lib/flags/list-kinds.ts'
import { goQuote } from '#lib/go/text.ts'
import type { JsonObject, JsonValue } from '#lib/json/value.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'
import { isNotFound } from '#meta/status.ts'

import { withMadeConfig } from '../apply/last-applied.ts'
import type { Info } from '../builder/select-options.ts'
import { type Command, defineCommand, type Invocation, usageError } from '../command.ts'
import { asError, ExitError, KubectlError } from '../errors.ts'
import {
  CASCADE_FLAG,
  cascadeOf,
  DRY_RUN_FLAG,
  type DryRun,
  dryRunOf,
  dryRunQuery,
  fieldManagerFlag,
  fileFlags,
  withDryRun,
} from '../flag-sets.ts'
import { patchedLocally } from '../manifests/local-patch.ts'
import { printerOf, printFlags } from '../printing.ts'
import { RECORD_FLAG, recorded } from '../recording.ts'
import { isImageName, runPod, runService, type RunOptions } from '../run/run-pod.ts'
import type { AnyObject, PatchType } from '../session/rest.ts'
import { type AttachOptions, DETACH_KEYS } from '../streams/attaching.ts'
import { chosenContainer } from '../streams/containers.ts'
import { attachOrRead, hasBegun, isOver, podThat, printLogs } from '../streams/started-pod.ts'
import { checkTimeout } from '../streams/target-pod.ts'
import { resultText } from './delete.ts'

const FLAGS = {
  ...printFlags(),
  ...fileFlags('to use to replace the resource.'),
  ...CASCADE_FLAG,
  ...DRY_RUN_FLAG,
  ...RECORD_FLAG,
  ...fieldManagerFlag('kubectl-run'),
  annotations: flag(stringArray, [], 'Annotations of the pod.'),
  attach: flag(
    bool,
    false,
    'Wait for the pod and attach to it. Enabled by -i. With --restart=Never kubectl returns the exit code of the container.',
  ),
  command: flag(bool, false, "Use the arguments as the container's command, not as its args."),
  'detach-keys': flag(string, DETACH_KEYS, 'Key sequence that ends the session and leaves the container running.'),
  env: flag(stringArray, [], 'Environment variables of the container.'),
  expose: flag(bool, false, 'Create a service for the pod. Requires --port.'),
  force: flag(bool, false, 'Delete objects from the API immediately, without waiting for a graceful termination.'),
  'grace-period': flag(
    int,
    -1,
    'Seconds that objects get to terminate. If negative, use the value of the object. 0 requires --force.',
  ),
  image: flag(string, '', 'Image of the container.', { required: true }),
  'image-pull-policy': flag(string, '', 'Image pull policy of the container. If empty, the server chooses a default.'),
  labels: flag(string, '', 'Comma-separated labels of the pod.', { shorthand: 'l' }),
  'leave-stdin-open': flag(bool, false, 'Keep standard input open after the first session ends.'),
  'override-type': flag(string, 'merge', 'How --overrides is applied: json, merge, or strategic.'),
  overrides: flag(string, '', 'JSON that overrides fields of the generated object; it must contain an apiVersion.'),
  'pod-running-timeout': flag(
    duration,
    60_000,
    'Time to wait for a pod to run (5s, 2m, 3h). Must be greater than zero.',
  ),
  port: flag(string, '', 'Port that the container exposes.'),
  privileged: flag(bool, false, 'Run the container in privileged mode.'),
  quiet: flag(bool, false, 'Suppress informational messages.', { shorthand: 'q' }),
  restart: flag(string, 'Always', 'Restart policy of the pod: Always, OnFailure or Never.'),
  rm: flag(bool, false, 'Delete the pod after the session ends. Requires --attach or -i.'),
  'save-config': flag(bool, false, 'Save the configuration in an annotation for kubectl apply.'),
  stdin: flag(bool, false, 'Keep standard input of the container open, even if nothing is attached.', {
    shorthand: 'i',
  }),
  timeout: flag(duration, 0, 'Time to wait before giving up. If zero, derive it from the object.'),
  tty: flag(bool, false, 'Allocate a terminal for the container.', { shorthand: 't' }),
  wait: flag(bool, false, 'Wait until the objects have disappeared, including finalizers.'),
}

type RunInvocation = Invocation<typeof FLAGS>

export const run: Command = defineCommand({
  name: 'run',
  use: 'NAME --image=image [--env="key=value"] [--port=port] [--dry-run=server|client] [--overrides=inline-json] [--command] -- [COMMAND] [args...] [options]',
  long: 'Run an image in a pod.',
  examples: `# Run nginx in a pod
kubectl run nginx --image=nginx

# Run a pod and create a service for its port
kubectl run hazelcast --image=hazelcast/hazelcast --port=5701 --expose

# Run busybox in the foreground without restarting it
kubectl run -i -t busybox --image=busybox --restart=Never

# Pass arguments to the container
kubectl run nginx --image=nginx -- <arg1> <arg2> ... <argN>`,
  flags: FLAGS,
  async run(invocation) {
    const { flags, stdout } = invocation
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    const printer = await printerOf(invocation, { operation: withDryRun('created', dryRun), keepOrder: true })
    const policy = cascadeOf(flags.cascade, invocation)
    const options = runOptions(invocation, dryRun)
    const pod = await created(invocation, await overridden(runPod(options), flags), dryRun)
    const made = [pod]
    let failure: Error | undefined
    if (flags.expose) {
      try {
        const service = await created(invocation, runService(options), dryRun)
        made.push(service)
        printer.print(service.object as unknown as JsonObject, stdout)
        if (flags.output === 'yaml') stdout.write('---\n')
      } catch (error) {
        failure = asError(error)
      }
    }
    if (isAttached(invocation)) return attachedTo(invocation, { made, options, policy })
    printer.print(pod.object as unknown as JsonObject, stdout)
    if (failure !== undefined) throw failure
    return undefined
  },
})

function isAttached({ flags, changed }: RunInvocation): boolean {
  return changed.has('attach') ? flags.attach : flags.stdin
}

function runOptions(invocation: RunInvocation, dryRun: DryRun): RunOptions {
  const { args, flags } = invocation
  checkRun(invocation, dryRun)
  const restartPolicy = flags.restart || (flags.stdin ? 'OnFailure' : 'Always')
  return {
    ...flags,
    name: args[0] as string,
    args: args.slice(1),
    isCommand: flags.command,
    pullPolicy: flags['image-pull-policy'],
    stdinOnce: flags.stdin && !flags['leave-stdin-open'],
    isPrivileged: flags.privileged,
    // Upstream writes the given value into the pod.
    restartPolicy: flags.restart === '' ? 'Always' : restartPolicy,
  }
}

function checkRun(invocation: RunInvocation, dryRun: DryRun): void {
  const { args, argsBeforeDash, flags } = invocation
  const wrong = (message: string): KubectlError => usageError(invocation, message)
  if (args.length === 0 || argsBeforeDash === 0) throw wrong('NAME is required for run')
  checkTimeout(invocation, flags['pod-running-timeout'])
  if (flags.image === '') throw new KubectlError('--image is required')
  if (!isImageName(flags.image)) {
    throw new KubectlError(`Invalid image name ${goQuote(flags.image)}: invalid reference format`)
  }
  const attaching = isAttached(invocation)
  const problem = (
    [
      [flags.tty && !flags.stdin, '-i/--stdin is required for containers with -t/--tty=true'],
      [flags.expose && flags.port === '', '--port must be set when exposing a service'],
      [!['', 'Always', 'OnFailure', 'Never'].includes(flags.restart), `invalid restart policy: ${flags.restart}`],
      [!attaching && flags.rm, '--rm should only be used for attached containers'],
      [
        attaching && dryRun !== 'none',
        "--dry-run=[server|client] can't be used with attached containers options (--attach, --stdin, or --tty)",
      ],
      [
        !['', 'Always', 'IfNotPresent', 'Never'].includes(flags['image-pull-policy']),
        `invalid image pull policy: ${flags['image-pull-policy']}`,
      ],
    ] as const
  ).find(([isWrong]) => isWrong)
  if (problem !== undefined) throw wrong(problem[1])
}

async function overridden(pod: AnyObject, flags: RunInvocation['flags']): Promise<AnyObject> {
  const { overrides, 'override-type': type } = flags
  if (overrides === '') return pod
  if (!['json', 'merge', 'strategic'].includes(type)) throw new KubectlError(`invalid override type: ${type}`)
  let document: JsonValue
  try {
    document = parseYaml(overrides)
  } catch (cause) {
    throw new KubectlError('Invalid JSON Patch', { cause })
  }
  const patch = { type: type as PatchType, document }
  const kind = { group: '', version: 'v1', kind: 'Pod' }
  return (await patchedLocally(kind, pod as unknown as JsonObject, patch)) as unknown as AnyObject
}

async function created(invocation: RunInvocation, generated: AnyObject, dryRun: DryRun): Promise<Info> {
  const { flags, session } = invocation
  const object = recorded(invocation, generated)
  const kind = await (await session.mapper()).ofObject(object.apiVersion ?? '', object.kind ?? '')
  const { namespace, isExplicit } = await session.namespace()
  const info = { kind, namespace, name: object.metadata.name ?? '', source: '' }
  if (dryRun === 'client') {
    const { name = '', ...metadata } = object.metadata
    return { ...info, object: isExplicit ? { ...object, metadata: { name, namespace, ...metadata } } : object }
  }
  const sent = withMadeConfig(object, flags['save-config'])
  const query = { fieldManager: flags['field-manager'], ...dryRunQuery(dryRun) }
  return { ...info, object: await (await session.rest()).create({ kind, namespace }, sent, query) }
}

interface RunState {
  readonly made: readonly Info[]
  readonly options: RunOptions
  readonly policy: string
}

/** Returns the exit code of the container if it is not restarted. */
async function attachedTo(invocation: RunInvocation, { made, options, policy }: RunState): Promise<number> {
  const { flags } = invocation
  try {
    return await converse(invocation, made[0] as Info, options)
  } finally {
    if (flags.rm) await removed(invocation, made, policy)
  }
}

async function converse(
  invocation: RunInvocation,
  { namespace, object }: Info,
  { restartPolicy }: RunOptions,
): Promise<number> {
  const { flags, path, stderr } = invocation
  const name = object?.metadata.name ?? ''
  const waiting = { namespace, name, timeoutMs: flags['pod-running-timeout'] }
  const attaching: AttachOptions = {
    container: '',
    stdin: flags.stdin,
    tty: flags.tty,
    quiet: flags.quiet,
    keys: flags['detach-keys'],
    commandPath: path.replace(/ run$/, ' attach'),
  }
  const pod = await podThat(invocation, waiting, hasBegun)
  if (isOver(pod)) await printLogs(invocation, pod, attaching)
  else {
    await printLogs(invocation, pod, { ...attaching, container: firstOf(pod) }).catch((error: unknown) => {
      stderr.write(`warning: couldn't fetch pre-attach logs: ${asError(error).message}\n`)
    })
    await attachOrRead(invocation, pod, attaching)
  }
  if (flags['leave-stdin-open'] || restartPolicy === 'Always') return 0
  const isEnough = (now: Pod): boolean => (restartPolicy === 'Never' ? isOver(now) : now.status?.phase === 'Succeeded')
  return exitCodeOf(await podThat(invocation, waiting, isEnough))
}

function firstOf(pod: Pod): string {
  return chosenContainer(pod, '', () => undefined).container.name
}

function exitCodeOf({ metadata, status }: Pod): number {
  const where = `pod ${metadata.namespace ?? ''}/${metadata.name ?? ''}`
  if (status?.phase === 'Succeeded') return 0
  const { exitCode = 0, reason = '', message = '' } = status?.containerStatuses?.[0]?.state?.terminated ?? {}
  if (exitCode === 0) throw new KubectlError(`${where} failed with unknown exit code`)
  throw new ExitError(exitCode, `${where} terminated (${reason})\n${message}`)
}

async function removed(invocation: RunInvocation, made: readonly Info[], policy: string): Promise<void> {
  const { session, stdout, flags } = invocation
  const rest = await session.rest()
  for (const info of made) {
    try {
      await rest.delete(info, { propagationPolicy: policy })
    } catch (error) {
      if (!isNotFound(error)) throw error
      continue
    }
    if (!flags.quiet) stdout.write(resultText(info, { output: '', isForced: false, dryRun: 'none' }))
  }
}
