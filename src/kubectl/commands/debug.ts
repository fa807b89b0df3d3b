/** kubectl debug: adds a debugging container to a pod, to a copy of it or to a node. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'

import type { Container, ContainerStatus, EphemeralContainer, Node, Pod } from '#apis/core/v1.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { stringMap, strings } from '#lib/flags/list-kinds.ts'
import { goQuote } from '#lib/go/text.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { pick } from '#lib/random.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'
import { isNotFound, StatusError } from '#meta/status.ts'

import { type Command, defineCommand, type Invocation } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import { patchedLocally } from '../manifests/local-patch.ts'
import { goFileError } from '../printing.ts'
import { type DebugStyle, isProfile, withProfile } from '../run/debug-profiles.ts'
import { isImageName } from '../run/run-pod.ts'
import { DETACH_KEYS } from '../streams/attaching.ts'
import { findContainer } from '../streams/containers.ts'
import { attachOrRead, podThat, printLogs } from '../streams/started-pod.ts'
import { PODS, readNamed } from '../streams/target-pod.ts'

const FLAGS = {
  'arguments-only': flag(bool, false, 'Use the arguments after -- as the args of the container, not as its command.'),
  attach: flag(bool, false, 'Wait for the container and attach to it. Enabled by -i.'),
  container: flag(string, '', 'Name of the new container.', { shorthand: 'c' }),
  'copy-to': flag(string, '', 'Create a copy of the pod with this name.'),
  custom: flag(string, '', 'File with a partial container in JSON or YAML, which overrides the profile.'),
  env: flag(stringMap, new Map(), 'Environment variables of the container.'),
  filename: flag(strings, [], 'identifying the resource to debug', { shorthand: 'f' }),
  image: flag(string, '', 'Image of the container.'),
  'image-pull-policy': flag(string, '', 'Image pull policy of the container. If empty, the server chooses a default.'),
  'keep-annotations': flag(bool, false, 'Keep the annotations in the copy.'),
  'keep-init-containers': flag(bool, true, 'Keep the init containers in the copy.'),
  'keep-labels': flag(bool, false, 'Keep the labels in the copy.'),
  'keep-liveness': flag(bool, false, 'Keep the liveness probes in the copy.'),
  'keep-readiness': flag(bool, false, 'Keep the readiness probes in the copy.'),
  'keep-startup': flag(bool, false, 'Keep the startup probes in the copy.'),
  profile: flag(string, 'general', 'Options are "general", "baseline", "restricted", "netadmin" or "sysadmin".'),
  quiet: flag(bool, false, 'Suppress informational messages.', { shorthand: 'q' }),
  replace: flag(bool, false, "With '--copy-to', delete the original pod."),
  'same-node': flag(bool, false, "With '--copy-to', schedule the copy on the same node."),
  'set-image': flag(stringMap, new Map(), "With '--copy-to', change images of containers, as name=image."),
  'share-processes': flag(
    bool,
    true,
    "With '--copy-to', share one process namespace among all containers of the copy.",
  ),
  stdin: flag(bool, false, 'Keep standard input of the container open, even if nothing is attached.', {
    shorthand: 'i',
  }),
  target: flag(string, '', 'Share the process namespace of this container of the pod.'),
  tty: flag(bool, false, 'Allocate a terminal for the container.', { shorthand: 't' }),
}

type DebugInvocation = Invocation<typeof FLAGS>

export const debug: Command = defineCommand({
  name: 'debug',
  use: '(POD | TYPE[[.VERSION].GROUP]/NAME) [ -- COMMAND [args...] ] [options]',
  long: 'Debug a pod with a new container in it or in a copy of it, or a node with a pod that has access to its files and processes.',
  examples: `# Add a busybox container to pod mypod and attach to it
kubectl debug mypod -it --image=busybox

# Create a copy of mypod with another image in all containers
kubectl debug mypod --copy-to=my-debugger --set-image=*=busybox

# Create a pod on a node, with the node's files at /host
kubectl debug node/mynode -it --image=busybox`,
  flags: FLAGS,
  completes: 'resources',
  async run(invocation) {
    const { args, argsBeforeDash, flags, session } = invocation
    await session.namespace()
    const hasArgs = argsBeforeDash >= 0 && args.length > argsBeforeDash
    const names = hasArgs ? args.slice(0, argsBeforeDash) : args
    const plan: DebugPlan = { args: hasArgs ? args.slice(argsBeforeDash) : [], custom: await customOf(invocation) }
    check(invocation, names, plan)
    const { filename } = flags
    const named = await readNamed(invocation, { names, ...(filename.length > 0 && { files: { filename } }) })
    for (const { kind, object } of named) {
      const id = `${kind.group}/${kind.kind}`
      if (id !== '/Pod' && id !== '/Node') {
        throw new KubectlError(`${goQuote(`${kind.group}/${kind.version}, Kind=${kind.kind}`)} not supported by debug`)
      }
      const started =
        kind.kind === 'Node'
          ? await onNode(invocation, object as unknown as Node, plan)
          : await inPod(invocation, object as unknown as Pod, plan)
      if (isAttached(invocation) && started.container !== '') await converse(invocation, started)
    }
  },
})

interface DebugPlan {
  readonly args: readonly string[]
  /** A partial container. */
  readonly custom: JsonObject | undefined
}

interface DebugTarget {
  readonly pod: Pod
  /** Empty if there is no container to attach to. */
  readonly container: string
}

function isAttached({ flags, changed }: DebugInvocation): boolean {
  return changed.has('attach') ? flags.attach : flags.stdin
}

async function customOf({ flags, cwd }: DebugInvocation): Promise<JsonObject | undefined> {
  if (!isProfile(flags.profile)) throw new KubectlError(`unknown profile: ${flags.profile}`)
  if (flags.custom === '') return undefined
  const text = await readFile(resolve(cwd, flags.custom), 'utf8').catch((cause: Error) => {
    const reason = goFileError(flags.custom, cause)
    throw new KubectlError(`must pass a container spec json file for custom profile: ${reason}`, { cause })
  })
  try {
    const found: unknown = parseYaml(text)
    if (typeof found !== 'object' || found === null || Array.isArray(found)) throw new Error('it is no object')
    return found as JsonObject
  } catch (cause) {
    throw new KubectlError(`${flags.custom} does not contain a valid container spec: ${asError(cause).message}`, {
      cause,
    })
  }
}

type Problem = readonly [isWrong: boolean, text: string]

function check(invocation: DebugInvocation, names: readonly string[], { args, custom }: DebugPlan): void {
  const { flags, changed, stdout, stderr } = invocation
  const { image, container, target, 'copy-to': copy, 'set-image': images, 'image-pull-policy': pull } = flags
  const isCopy = copy !== ''
  const problems: Problem[] = [
    [
      isAttached(invocation) && changed.has('attach') && image === '' && container === '',
      'you must specify --container or create a new container using --image in order to attach.',
    ],
    ...(isCopy ? copyProblems(flags, args) : otherProblems(flags)),
    [image !== '' && !isImageName(image), `invalid image name ${goQuote(image)}: invalid reference format`],
    [names.length === 0 && flags.filename.length === 0, 'NAME or filename is required for debug'],
    [!['', 'Always', 'IfNotPresent', 'Never'].includes(pull), `invalid image pull policy: ${pull}`],
    ...[...images].map(([name, one]): Problem => [
      !isImageName(one),
      `invalid image name ${goQuote(one)} for container ${goQuote(name)}: invalid reference format`,
    ]),
    [target !== '' && isCopy, '--target is incompatible with --copy-to. Use --share-processes instead.'],
  ]
  complain(problems)
  if (target !== '' && !flags.quiet) {
    stdout.write(
      `Targeting container ${goQuote(target)}. If you don't see processes from this container it may be because the container runtime doesn't support this feature.\n`,
    )
  }
  const fixed = ['name', 'command', 'image', 'lifecycle', 'volumeDevices'].some(
    (field) => custom?.[field] !== undefined,
  )
  complain([
    [flags.tty && !flags.stdin, '-i/--stdin is required for containers with -t/--tty=true'],
    [fixed, 'name, command, image, lifecycle and volume devices are not modifiable via custom profile'],
  ])
  if (flags.profile === 'legacy') stderr.write(LEGACY)
}

const LEGACY =
  '--profile=legacy is deprecated and planned to be removed in v1.39. It is recommended to specify other profile, for example "--profile=general".\n'

function complain(problems: readonly Problem[]): void {
  const problem = problems.find(([isWrong]) => isWrong)
  if (problem !== undefined) throw new KubectlError(problem[1])
}

function copyProblems(flags: DebugInvocation['flags'], args: readonly string[]): Problem[] {
  const { image, container, 'set-image': images } = flags
  return [
    [
      image === '' && images.size === 0 && args.length === 0,
      'you must specify --image, --set-image or command arguments.',
    ],
    [
      args.length > 0 && container === '' && image === '',
      'you must specify an existing container or a new image when specifying args.',
    ],
  ]
}

function otherProblems(flags: DebugInvocation['flags']): Problem[] {
  return [
    [flags.replace, '--replace may only be used with --copy-to.'],
    [flags['same-node'], '--same-node may only be used with --copy-to.'],
    [flags['set-image'].size > 0, '--set-image may only be used with --copy-to.'],
    [flags.image === '', 'you must specify --image when not using --copy-to.'],
  ]
}

const LETTERS = 'bcdfghjklmnpqrstvwxz2456789'

function nameFor({ flags, random, stdout }: DebugInvocation, pod: Pod): string {
  if (flags.container !== '') return flags.container
  let name: string
  do name = `debugger-${pick(random, LETTERS, 5)}`
  while (findContainer(pod, name) !== undefined)
  if (!flags.quiet) stdout.write(`Defaulting debug container name to ${name}.\n`)
  return name
}

function containerOf({ flags }: DebugInvocation, name: string, args: readonly string[]): Container {
  const env = [...flags.env].map(([key, value]) => ({ name: key, value }))
  const pull = flags['image-pull-policy']
  return {
    name,
    image: flags.image,
    ...(args.length > 0 && (flags['arguments-only'] ? { args: [...args] } : { command: [...args] })),
    ...(env.length > 0 && { env }),
    resources: {},
    terminationMessagePolicy: 'File',
    ...(pull !== '' && { imagePullPolicy: pull }),
    ...(flags.stdin && { stdin: true }),
    ...(flags.tty && { tty: true }),
  }
}

async function profiled(
  { flags }: DebugInvocation,
  pod: Pod,
  { style, container, custom }: { readonly style: DebugStyle; readonly container: string } & Pick<DebugPlan, 'custom'>,
): Promise<Pod> {
  const keeping = {
    labels: flags['keep-labels'],
    annotations: flags['keep-annotations'],
    liveness: flags['keep-liveness'],
    readiness: flags['keep-readiness'],
    startup: flags['keep-startup'],
    initContainers: flags['keep-init-containers'],
  }
  const made = withProfile(pod, { profile: flags.profile, style, container, keeping })
  if (custom === undefined) return made
  const field = style === 'ephemeral' ? 'ephemeralContainers' : 'containers'
  const document = { spec: { [field]: [{ ...custom, name: container }] } }
  const kind = { group: '', version: 'v1', kind: 'Pod' }
  return (await patchedLocally(kind, made as unknown as JsonObject, { type: 'strategic', document })) as unknown as Pod
}

async function inPod(invocation: DebugInvocation, pod: Pod, plan: DebugPlan): Promise<DebugTarget> {
  return invocation.flags['copy-to'] === '' ? ephemeral(invocation, pod, plan) : copied(invocation, pod, plan)
}

async function ephemeral(invocation: DebugInvocation, pod: Pod, { args, custom }: DebugPlan): Promise<DebugTarget> {
  const { flags, session } = invocation
  const container = nameFor(invocation, pod)
  const { resources: _, ...made } = containerOf(invocation, container, args)
  const added = { ...made, ...(flags.target !== '' && { targetContainerName: flags.target }) } as EphemeralContainer
  const before = {
    ...pod,
    spec: { ...pod.spec, ephemeralContainers: [...(pod.spec.ephemeralContainers ?? []), added] },
  }
  const after = await profiled(invocation, before, { style: 'ephemeral', container, custom })
  const last = after.spec.ephemeralContainers?.at(-1) as EphemeralContainer
  warnOfUser(invocation, last, pod)
  const { namespace = '', name = '' } = pod.metadata
  const where = { kind: PODS, namespace, name, subresource: 'ephemeralcontainers' }
  const rest = await session.rest()
  // The new container comes last.
  const order = (after.spec.ephemeralContainers ?? []).map((one) => ({ name: one.name }))
  const document = { spec: { '$setElementOrder/ephemeralContainers': order, ephemeralContainers: [last] } }
  const patched = await rest.patch(where, 'strategic', document).catch((error: unknown) => {
    if (error instanceof StatusError && isNotFound(error) && (error.status.details?.name ?? '') === '') {
      const quoted = goQuote(error.message)
      throw new KubectlError(`ephemeral containers are disabled for this cluster (error from server: ${quoted})`)
    }
    throw error
  })
  return { pod: patched as unknown as Pod, container }
}

async function copied(invocation: DebugInvocation, pod: Pod, plan: DebugPlan): Promise<DebugTarget> {
  const { flags, session } = invocation
  const { pod: copy, container } = await copyOf(invocation, pod, plan)
  const own = copy.spec.containers.find(({ name }) => name === container)
  if (own !== undefined) warnOfUser(invocation, own, copy)
  const { namespace = '', name = '' } = pod.metadata
  const rest = await session.rest()
  const created = await rest.create({ kind: PODS, namespace }, copy)
  if (flags.replace) await rest.delete({ kind: PODS, namespace, name }, { gracePeriodSeconds: 0 })
  return { pod: created as unknown as Pod, container }
}

async function copyOf(invocation: DebugInvocation, pod: Pod, { args, custom }: DebugPlan): Promise<DebugTarget> {
  const { flags, changed } = invocation
  const { namespace = '', annotations, labels } = pod.metadata
  const { ephemeralContainers: _, nodeName, ...spec } = pod.spec
  const images = flags['set-image']
  const base = {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: { name: flags['copy-to'], namespace, ...(annotations && { annotations }), ...(labels && { labels }) },
    spec: {
      ...spec,
      ...(changed.has('share-processes') && { shareProcessNamespace: flags['share-processes'] }),
      ...(flags['same-node'] && nodeName !== undefined && { nodeName }),
      containers: spec.containers.map((one) => {
        const image = images.get(one.name) ?? images.get('*') ?? ''
        return image === '' ? one : { ...one, image }
      }),
    },
  } as unknown as Pod
  const known = flags.container !== '' && base.spec.containers.some(({ name }) => name === flags.container)
  if (!known && flags.image === '') {
    // The user only changes images.
    if (images.size > 0) return { pod: base, container: '' }
    throw new KubectlError('you must specify image when creating new container')
  }
  const container = known ? flags.container : nameFor(invocation, base)
  const wanted = containerOf(invocation, container, args)
  const containers = known
    ? base.spec.containers.map((one) => (one.name === container ? changedContainer(one, wanted, flags) : one))
    : [...base.spec.containers, wanted]
  const made = { ...base, spec: { ...base.spec, containers } }
  return { pod: await profiled(invocation, made, { style: 'copy', container, custom }), container }
}

/** Given values replace those of the container; the others stay. */
function changedContainer(before: Container, wanted: Container, flags: DebugInvocation['flags']): Container {
  const { args: _a, stdin: _s, tty: _t, ...kept } = before
  const args = wanted.command === undefined && before.args !== undefined ? { args: before.args } : {}
  const { resources: _r, terminationMessagePolicy: _p, image, ...rest } = wanted
  return { ...kept, ...args, ...(flags.image !== '' && { image }), ...rest }
}

async function onNode(invocation: DebugInvocation, node: Node, { args, custom }: DebugPlan): Promise<DebugTarget> {
  const { flags, random, session, stdout } = invocation
  const { namespace } = await session.namespace()
  const nodeName = node.metadata.name ?? ''
  const container = flags.container || 'debugger'
  const name = `node-debugger-${nodeName}-${pick(random, LETTERS, 5)}`
  if (!flags.quiet) stdout.write(`Creating debugging pod ${name} with container ${container} on node ${nodeName}.\n`)
  const pod = {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: { name, labels: { 'app.kubernetes.io/managed-by': 'kubectl-debug' } },
    spec: {
      containers: [containerOf(invocation, container, args)],
      restartPolicy: 'Never',
      nodeName,
      tolerations: [{ operator: 'Exists' }],
    },
  } as unknown as Pod
  const made = await profiled(invocation, pod, { style: 'node', container, custom })
  const created = await (await session.rest()).create({ kind: PODS, namespace }, made)
  return { pod: created as unknown as Pod, container }
}

/** Most capabilities have no effect for a user other than root. */
function warnOfUser({ stderr }: DebugInvocation, container: Container | EphemeralContainer, { spec }: Pod): void {
  const { runAsUser, privileged, capabilities } = container.securityContext ?? {}
  const isRoot = (spec.securityContext?.runAsUser ?? 0) === 0 || runAsUser === 0
  const isPowerful = privileged === true || (capabilities?.add?.length ?? 0) > 0
  if (isRoot || !isPowerful) return
  stderr.write(
    'Warning: Non-root user is configured for the entire target Pod, and some capabilities granted by debug profile may not work. Please consider using "--custom" with a custom profile that specifies "securityContext.runAsUser: 0".\n',
  )
}

function statusOf({ status }: Pod, name: string): ContainerStatus | undefined {
  const all = [status?.initContainerStatuses, status?.containerStatuses, status?.ephemeralContainerStatuses]
  return all.flatMap((some) => some ?? []).find((one) => one.name === name)
}

async function converse(invocation: DebugInvocation, { pod, container }: DebugTarget): Promise<void> {
  const { flags, path, session } = invocation
  const { namespace = '', name = '' } = pod.metadata
  const begun = await podThat(invocation, { namespace, name }, (now) => {
    const { running, terminated, waiting } = statusOf(now, container)?.state ?? {}
    if (!flags.quiet && waiting?.message) session.warn(`container ${container}: ${waiting.message}`)
    return running !== undefined || terminated !== undefined
  })
  const attaching = {
    container,
    stdin: flags.stdin,
    tty: flags.tty,
    quiet: flags.quiet,
    keys: DETACH_KEYS,
    commandPath: path.replace(/ debug$/, ' attach'),
  }
  if (statusOf(begun, container)?.state?.terminated !== undefined) return printLogs(invocation, begun, attaching)
  return attachOrRead(invocation, begun, attaching)
}
