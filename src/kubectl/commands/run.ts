/** kubectl run: an image in a pod, with a service in front of it and a session in it where they are asked for. */
import type { Pod } from '#apis/core/v1.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, int, string } from '#lib/flags/kinds.ts'
import { stringArray } from '#lib/flags/list-kinds.ts'
import { goQuote } from '#lib/go-text.ts'
import type { JsonObject, JsonValue } from '#lib/json-value.ts'
import { parseYaml } from '#lib/yaml.ts'
import { isNotFound } from '#meta/status.ts'

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
import { withMadeConfig } from '../last-applied.ts'
import { patchedLocally } from '../local-patch.ts'
import { printerOf, printFlags } from '../printing.ts'
import { RECORD_FLAG, recorded } from '../recording.ts'
import type { AnyObject, PatchType } from '../rest.ts'
import { isImageName, runPod, runService, type RunWishes } from '../run-pod.ts'
import type { Info } from '../selecting.ts'
import { type Attaching, DETACH_KEYS } from '../streams/attaching.ts'
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
    'Wait for the pod and attach to it. On with -i. With --restart=Never the exit code of the container is ours.',
  ),
  command: flag(bool, false, "Arguments are the container's command, not its args."),
  'detach-keys': flag(string, DETACH_KEYS, 'Keys that end the session and leave the container alone.'),
  env: flag(stringArray, [], 'Variables of the container.'),
  expose: flag(bool, false, 'Make a service in front of the pod. Needs --port.'),
  force: flag(bool, false, 'Take objects out of the API at once, without waiting for what runs to stop.'),
  'grace-period': flag(int, -1, 'Seconds to stop in. Negative: as the object says. 0 only with --force.'),
  image: flag(string, '', 'The image to run.', { required: true }),
  'image-pull-policy': flag(string, '', 'When the image is pulled. Empty: as the server says.'),
  labels: flag(string, '', 'Labels of the pod, separated by commas.', { shorthand: 'l' }),
  'leave-stdin-open': flag(bool, false, 'The input stays open when the first session ends.'),
  'override-type': flag(string, 'merge', 'How --overrides is laid over the object: json, merge, or strategic.'),
  overrides: flag(string, '', 'JSON to lay over the object, which must have a version.'),
  'pod-running-timeout': flag(duration, 60_000, 'How long to wait until there is a pod (5s, 2m, 3h). More than zero.'),
  port: flag(string, '', 'The port that the container has.'),
  privileged: flag(bool, false, 'Run the container privileged.'),
  quiet: flag(bool, false, 'Say nothing of what is done.', { shorthand: 'q' }),
  restart: flag(string, 'Always', 'When it is started again: Always, OnFailure or Never.'),
  rm: flag(bool, false, 'Delete the pod when the session ends. Only with --attach or -i.'),
  'save-config': flag(bool, false, 'Remember the configuration in an annotation, for kubectl apply.'),
  stdin: flag(bool, false, 'Keep the input of the container open, whether somebody is attached or not.', {
    shorthand: 'i',
  }),
  timeout: flag(duration, 0, 'How long to wait before giving up. Zero: by the size of the object.'),
  tty: flag(bool, false, 'Give the container a terminal.', { shorthand: 't' }),
  wait: flag(bool, false, 'Wait until the objects are gone, finalizers included.'),
}

type RunInvocation = Invocation<typeof FLAGS>

export const run: Command = defineCommand({
  name: 'run',
  use: 'NAME --image=image [--env="key=value"] [--port=port] [--dry-run=server|client] [--overrides=inline-json] [--command] -- [COMMAND] [args...] [options]',
  long: 'Run an image in a pod.',
  examples: `# A pod nginx
kubectl run nginx --image=nginx

# A pod and a service in front of its port
kubectl run hazelcast --image=hazelcast/hazelcast --port=5701 --expose

# A busybox in the foreground, which is not started again when it ends
kubectl run -i -t busybox --image=busybox --restart=Never

# The arguments of the container
kubectl run nginx --image=nginx -- <arg1> <arg2> ... <argN>`,
  flags: FLAGS,
  async run(invocation) {
    const { flags, stdout } = invocation
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    const printer = await printerOf(invocation, { operation: withDryRun('created', dryRun), keepOrder: true })
    const policy = cascadeOf(flags.cascade, invocation)
    const wishes = wishesOf(invocation, dryRun)
    const pod = await created(invocation, await overridden(runPod(wishes), flags), dryRun)
    const made = [pod]
    let failure: Error | undefined
    if (flags.expose) {
      try {
        const service = await created(invocation, runService(wishes), dryRun)
        made.push(service)
        printer.print(service.object as unknown as JsonObject, stdout)
        if (flags.output === 'yaml') stdout.write('---\n')
      } catch (error) {
        failure = asError(error)
      }
    }
    if (isAttached(invocation)) return attachedTo(invocation, { made, wishes, policy })
    printer.print(pod.object as unknown as JsonObject, stdout)
    if (failure !== undefined) throw failure
    return undefined
  },
})

function isAttached({ flags, changed }: RunInvocation): boolean {
  return changed.has('attach') ? flags.attach : flags.stdin
}

function wishesOf(invocation: RunInvocation, dryRun: DryRun): RunWishes {
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
    // Upstream puts what was given into the pod.
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
  const place = { kind, namespace, name: object.metadata.name ?? '', source: '' }
  if (dryRun === 'client') {
    const { name = '', ...metadata } = object.metadata
    return { ...place, object: isExplicit ? { ...object, metadata: { name, namespace, ...metadata } } : object }
  }
  const sent = withMadeConfig(object, flags['save-config'])
  const query = { fieldManager: flags['field-manager'], ...dryRunQuery(dryRun) }
  return { ...place, object: await (await session.rest()).create({ kind, namespace }, sent, query) }
}

interface Started {
  readonly made: readonly Info[]
  readonly wishes: RunWishes
  readonly policy: string
}

/** The exit code of what ran, when it is not started again. */
async function attachedTo(invocation: RunInvocation, { made, wishes, policy }: Started): Promise<number> {
  const { flags } = invocation
  try {
    return await converse(invocation, made[0] as Info, wishes)
  } finally {
    if (flags.rm) await removed(invocation, made, policy)
  }
}

async function converse(
  invocation: RunInvocation,
  { namespace, object }: Info,
  { restartPolicy }: RunWishes,
): Promise<number> {
  const { flags, path, stderr } = invocation
  const name = object?.metadata.name ?? ''
  const waiting = { namespace, name, timeoutMs: flags['pod-running-timeout'] }
  const attaching: Attaching = {
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
