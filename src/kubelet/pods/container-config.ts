/** Builds the CRI ContainerConfig of a container. Pure. */
import type { Container, EphemeralContainer, Pod, SeccompProfile, SecurityContext } from '#apis/core/v1.ts'
import type {
  ContainerConfig,
  Device,
  Image,
  LinuxContainerResources,
  LinuxContainerSecurityContext,
  Mount,
  SecurityProfile,
  UserNamespace,
} from '#apis/wire/cri.ts'
import { PROFILE } from '#cri/codes.ts'
import { signalNumber } from '#cri/signals.ts'
import { goJson, goQuote } from '#lib/go/text.ts'
import type { Input } from '#lib/protobuf/message.ts'
import { fnv1a } from '#model/template-hash.ts'

import { podText } from '../pod/events.ts'
import { containerResources } from '../pod/linux-resources.ts'
import type { PodFacts } from '../pod/pod-of-node.ts'
import { NO_RUN_OPTIONS, type RunContainerOptions } from '../pod/run-options.ts'
import { groupsOf, groupsPolicyOf, LABELS, namespacesOf, podLabels } from '../pod/sandbox-config.ts'
import { expand } from './environment.ts'

export const ANNOTATIONS = {
  hash: 'io.kubernetes.container.hash',
  restartCount: 'io.kubernetes.container.restartCount',
  messagePath: 'io.kubernetes.container.terminationMessagePath',
  messagePolicy: 'io.kubernetes.container.terminationMessagePolicy',
  preStop: 'io.kubernetes.container.preStopHandler',
  ports: 'io.kubernetes.container.ports',
  grace: 'io.kubernetes.pod.terminationGracePeriod',
  deletionGrace: 'io.kubernetes.pod.deletionGracePeriod',
} as const

/** The user of an image: a number, or a name that only the image's own files could resolve. */
export type ImageUser = { readonly uid: number } | { readonly name: string }

/** The user as the runtime reports it in an image's status. Root, unless the image has a USER. */
export function imageUserOf({ uid, username }: Pick<Image, 'uid' | 'username'>): ImageUser {
  if (uid !== undefined) return { uid: Number(uid.value) }
  return username === '' ? { uid: 0 } : { name: username }
}

export interface ContainerInput {
  readonly pod: Pod
  readonly container: Container | EphemeralContainer
  readonly restartCount: number
  readonly facts: Pick<PodFacts, 'memoryBytes' | 'rootDir' | 'seccompDefault'>
  readonly environment: ReadonlyMap<string, string>
  /** Volumes first, then `/etc/hosts`, then the termination message file. */
  readonly mounts: readonly Input<Mount>[]
  readonly devices?: readonly Input<Device>[]
  /** Default: nothing is allocated exclusively. */
  readonly runOptions?: RunContainerOptions
  /** The image reference in the runtime. */
  readonly imageRef: string
  readonly imageUser: ImageUser
  /** The target container of an ephemeral container. */
  readonly targetId?: string | undefined
  /** The user namespace of the sandbox. Default: the node's. */
  readonly users?: Input<UserNamespace> | undefined
}

/** Throws when runAsNonRoot is set and the container would, or might, run as root. */
export function containerConfig(input: ContainerInput): Input<ContainerConfig> {
  const { pod, container, restartCount, environment, mounts, imageRef } = input
  const known = (name: string): string | undefined => environment.get(name)
  const { name, image = '', command = [], args = [], workingDir = '', stdin, stdinOnce, tty } = container
  verifyRunAsNonRoot(input)
  return {
    metadata: { name, attempt: restartCount },
    image: { image: imageRef, userSpecifiedImage: image },
    command: command.map((text) => expand(text, known)),
    args: args.map((text) => expand(text, known)),
    workingDir,
    envs: Array.from(environment, ([key, value]) => ({ key, value: Buffer.from(value) })),
    mounts: mounts.map((mount) => ({ ...mount, ...mappingsOf(input) })),
    devices: input.devices ?? [],
    cdiDevices: (input.runOptions?.cdiDevices ?? []).map((device) => ({ name: device })),
    labels: new Map([...podLabels(pod), [LABELS.containerName, name]]),
    annotations: new Map([...(input.runOptions?.annotations ?? []), ...annotationsOf(input)]),
    logPath: `${name}/${restartCount}.log`,
    stdin: stdin ?? false,
    stdinOnce: stdinOnce ?? false,
    tty: tty ?? false,
    stopSignal: signalNumber(container.lifecycle?.stopSignal),
    linux: { resources: resourcesOf(input), securityContext: securityOf(input) },
  }
}

/** The ID mappings of volumes, so that files keep their owners in a user namespace. */
function mappingsOf({
  users: { uids = [], gids = [] } = {},
}: ContainerInput): Pick<Input<Mount>, 'uidMappings' | 'gidMappings'> {
  return uids.length === 0 ? {} : { uidMappings: uids, gidMappings: gids }
}

function resourcesOf({ pod, container, facts, runOptions }: ContainerInput): Input<LinuxContainerResources> {
  const { cpus: cpusetCpus, memoryNodes: cpusetMems, hasExclusiveCpus } = runOptions ?? NO_RUN_OPTIONS
  return {
    ...containerResources(pod, container, { ...facts, hasExclusiveCpus }),
    ...(cpusetCpus !== '' && { cpusetCpus }),
    ...(cpusetMems !== '' && { cpusetMems }),
  }
}

/** Hash of name and image, as in upstream. A different hash means that the running container is outdated. */
export function containerHash({ name, image = '' }: Container | EphemeralContainer): string {
  const json = Buffer.from(goJson({ image, name }))
  return fnv1a(Buffer.from(`([]uint8)[${[...json].join(' ')}]`)).toString(16)
}

function annotationsOf({ pod, container, restartCount }: ContainerInput): Map<string, string> {
  const { terminationMessagePath = '', terminationMessagePolicy = '', lifecycle, ports = [] } = container
  const { deletionGracePeriodSeconds } = pod.metadata
  const { terminationGracePeriodSeconds } = pod.spec
  const annotations: [string, string | undefined][] = [
    [ANNOTATIONS.hash, containerHash(container)],
    [ANNOTATIONS.restartCount, String(restartCount)],
    [ANNOTATIONS.messagePath, terminationMessagePath],
    [ANNOTATIONS.messagePolicy, terminationMessagePolicy],
    [ANNOTATIONS.deletionGrace, deletionGracePeriodSeconds?.toString()],
    [ANNOTATIONS.grace, terminationGracePeriodSeconds?.toString()],
    [ANNOTATIONS.preStop, lifecycle?.preStop === undefined ? undefined : goJson(lifecycle.preStop)],
    [ANNOTATIONS.ports, ports.length === 0 ? undefined : goJson(ports)],
  ]
  return new Map(annotations.filter((pair): pair is [string, string] => pair[1] !== undefined))
}

/** Throws with upstream's texts. */
function verifyRunAsNonRoot({ pod, container, imageUser }: ContainerInput): void {
  const own = container.securityContext
  const ofPod = pod.spec.securityContext
  if ((own?.runAsNonRoot ?? ofPod?.runAsNonRoot) !== true) return
  const where = `(pod: ${goQuote(podText(pod))}, container: ${container.name})`
  const user = own?.runAsUser ?? ofPod?.runAsUser
  if (user === 0) throw new Error(`container's runAsUser breaks non-root policy ${where}`)
  const fault = user === undefined ? nonRootFault(imageUser) : undefined
  if (fault !== undefined) throw new Error(`container has runAsNonRoot and image ${fault} ${where}`)
}

const MAX_UID = 2 ** 31 - 1

function nonRootFault(user: ImageUser): string | undefined {
  if ('name' in user) return `has non-numeric user (${user.name}), cannot verify user is non-root`
  const { uid } = user
  if (uid === 0) return 'will run as root'
  if (uid > 0 && uid <= MAX_UID) return undefined
  const range = `must be between 0 and ${MAX_UID}, inclusive`
  return `has an invalid user id (${uid}). (Must be 1-(${MAX_UID})): ${range}`
}

const MASKED = [
  '/proc/asound',
  '/proc/acpi',
  '/proc/interrupts',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
]
const READ_ONLY = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger']

function securityOf(input: ContainerInput): Input<LinuxContainerSecurityContext> {
  const { pod, container, imageUser, targetId } = input
  const own = container.securityContext ?? {}
  const ofPod = pod.spec.securityContext ?? {}
  const isUnmasked = own.procMount === 'Unmasked'
  const runAsGroup = own.runAsGroup ?? ofPod.runAsGroup
  return {
    ...capabilitiesOf(own),
    privileged: own.privileged ?? false,
    namespaceOptions: namespacesOf(pod.spec, { targetId, users: input.users }),
    selinuxOptions: own.seLinuxOptions ?? ofPod.seLinuxOptions,
    ...userOf(own.runAsUser ?? ofPod.runAsUser, imageUser),
    ...(runAsGroup !== undefined && { runAsGroup: { value: runAsGroup } }),
    readonlyRootfs: own.readOnlyRootFilesystem ?? false,
    supplementalGroups: groupsOf(pod.spec),
    supplementalGroupsPolicy: groupsPolicyOf(pod.spec),
    noNewPrivs: own.allowPrivilegeEscalation === false,
    maskedPaths: isUnmasked ? [] : MASKED,
    readonlyPaths: isUnmasked ? [] : READ_ONLY,
    seccomp: seccompOf(own.seccompProfile ?? ofPod.seccompProfile, input.facts),
    ...appArmorOf(own.appArmorProfile ?? ofPod.appArmorProfile),
  }
}

function capabilitiesOf({ capabilities }: SecurityContext): Input<LinuxContainerSecurityContext> {
  if (capabilities === undefined) return {}
  const { add = [], drop = [] } = capabilities
  return { capabilities: { addCapabilities: add, dropCapabilities: drop } }
}

function userOf(runAsUser: number | undefined, image: ImageUser): Input<LinuxContainerSecurityContext> {
  if (runAsUser !== undefined) return { runAsUser: { value: runAsUser } }
  return 'name' in image ? { runAsUsername: image.name } : { runAsUser: { value: image.uid } }
}

function seccompOf(
  profile: SeccompProfile | undefined,
  { rootDir, seccompDefault = false }: ContainerInput['facts'],
): Input<SecurityProfile> {
  const { type } = profile ?? { type: seccompDefault ? 'RuntimeDefault' : 'Unconfined' }
  if (type === 'RuntimeDefault') return { profileType: PROFILE.runtimeDefault }
  if (type !== 'Localhost') return { profileType: PROFILE.unconfined }
  return { profileType: PROFILE.localhost, localhostRef: `${rootDir}/seccomp/${profile?.localhostProfile ?? ''}` }
}

interface AppArmor {
  readonly type: string
  readonly localhostProfile?: string
}

/** Sets both fields: older runtimes read only the string. */
function appArmorOf(profile: AppArmor | undefined): Input<LinuxContainerSecurityContext> {
  switch (profile?.type) {
    case 'RuntimeDefault':
      return { apparmor: { profileType: PROFILE.runtimeDefault }, apparmorProfile: 'runtime/default' }
    case 'Unconfined':
      return { apparmor: { profileType: PROFILE.unconfined }, apparmorProfile: 'unconfined' }
    case 'Localhost': {
      const { localhostProfile: localhostRef = '' } = profile
      return {
        apparmor: { profileType: PROFILE.localhost, localhostRef },
        apparmorProfile: `localhost/${localhostRef}`,
      }
    }
    default:
      return {}
  }
}
